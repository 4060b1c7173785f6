import { JSON_FLAG } from '../../operations/flags.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { placeFlags } from '../command-line/listening.ts';
import { UI_KEY_VARIABLE } from '../../core/names/door-keys.ts';

export const DEFAULT_UI_PORT = 8020;

export const uiCommand = defineCommand({
  name: 'ui',
  group: 'Look',
  summary: 'open the dashboard of all runs in the browser, live; steer runs from there',
  details: [
    'Reads the store (a folder or a bucket) and needs no Temporal server; where one answers, you can also act.',
    'Prints a link that works once. Listens on loopback by default and does not speak TLS. Runs until Ctrl-C.',
    `Scripts send a key: the one in ${UI_KEY_VARIABLE}; without a terminal it is required.`,
  ],
  examples: ['temper ui', 'temper ui --store s3://my-bucket/temper --read-only', 'temper ui --export site --run demo'],
  arguments: {},
  flags: {
    ...placeFlags({ keyVariable: UI_KEY_VARIABLE, defaultPort: DEFAULT_UI_PORT }),
    store: {
      kind: 'text',
      placeholder: 'URI',
      description: 'folder or s3://BUCKET/PREFIX to look at, also a copy; needs no project',
      default: "the project's",
    },
    'read-only': { kind: 'boolean', description: 'refuse actions and chats' },
    export: {
      kind: 'text',
      placeholder: 'DIR',
      description: 'write a static site into this folder instead, which opens without a server',
    },
    run: { kind: 'texts', placeholder: 'RUN', description: 'only this run; repeatable', needs: ['export'] },
    json: { ...JSON_FLAG, description: `print one JSON object when it is ready; needs ${UI_KEY_VARIABLE}` },
  },
  run: async (context): Promise<number> => (await import('./ui.ts')).openInBackground(context),
});

export type UiContext = CommandContext<typeof uiCommand>;
