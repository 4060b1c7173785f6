/** Operations that look at runs. */
import { RUN_ARGUMENT } from './flags.ts';
import { defineOperation } from './operation.ts';

export const runs = defineOperation({
  name: 'runs',
  summary: 'list the runs of this project, newest first',
  arguments: {},
  flags: {},
  effect: 'reads',
  run: async (_, place) => (await import('./list-runs.ts')).findRuns(place),
  lines: async (found) => (await import('./list-runs.ts')).runLines(found),
  problems: ({ unreadable }) => unreadable.map(({ message }) => message),
});

export const show = defineOperation({
  name: 'show',
  summary: 'show one run: its state, its results and what it is waiting for',
  details: [
    'Reads the store and needs no server. If a server answers within two seconds, you also see the pending activities.',
  ],
  arguments: { run: RUN_ARGUMENT },
  flags: {},
  effect: 'reads',
  run: async ({ run }, place) => (await import('./show-run.ts')).findRun(place, run),
  lines: async (shown) => (await import('./show-run.ts')).shownLines(shown),
});
