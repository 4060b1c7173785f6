import { defineCommand } from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';

export const devCommand = defineCommand({
  name: 'dev',
  summary: 'run the local stack in the foreground: Temporal server and UI, workers, GPU worker',
  details: [
    'Runs until Ctrl-C, or joins a local stack that is already running. The stack stops with the last command using it.',
  ],
  arguments: {},
  flags: {
    agent: { kind: 'text', placeholder: 'FILE', description: 'also play this agent, so that its runs continue' },
    ...ENGINE_FLAGS,
    'ui-port': {
      kind: 'port',
      placeholder: 'N',
      description: "port of Temporal's UI; default: a free one, remembered",
    },
    'engine-port': {
      kind: 'port',
      placeholder: 'N',
      description: 'port of the engine; default: a free one, remembered',
    },
  },
});
