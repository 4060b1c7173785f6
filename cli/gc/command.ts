import { defineCommand, JSON_FLAG, type CommandContext } from '../command-line/command.ts';

export const gcCommand = defineCommand({
  name: 'gc',
  summary: 'show what nothing in the store needs any more, or remove it',
  details: [
    'Garbage is: blobs that no run, commit or schedule needs; writes that were never finished, because their writer was',
    'killed; journals of runs that have ended; folders of runs without a run.json, as an interrupted copy leaves them.',
    'Without --remove nothing is changed. What was written within --older-than stays, so that runs in progress are safe.',
    'A run that failed and whose journals are gone can be continued, but makes the calls of its unfinished step again.',
    'Needs no server.',
  ],
  examples: ['temper gc', 'temper gc --remove --older-than 1w'],
  arguments: {},
  flags: {
    remove: { kind: 'boolean', description: 'remove it; what is written meanwhile stays' },
    'older-than': {
      kind: 'text',
      placeholder: 'T',
      description: 'only what was written longer ago: 1d, 2w; at least 1d, which is the default',
    },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./gc.ts')).gc(context),
});

export type GcContext = CommandContext<typeof gcCommand>;
