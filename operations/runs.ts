/** Operations that look at runs. */
import { describeHeadline, formatNumber } from '../core/reports/format.ts';
import { RUN_ARGUMENT } from './flags.ts';
import { defineOperation } from './operation.ts';
import type { FoundRun, FoundRuns } from './results.ts';

export const runs = defineOperation({
  name: 'runs',
  group: 'Look',
  summary: 'list the runs of this project, newest first',
  arguments: {},
  flags: {},
  effect: 'reads',
  run: async (_, place): Promise<FoundRuns> => (await import('./list-runs.ts')).findRuns(place),
  lines: async (found) => (await import('./list-runs.ts')).runLines(found),
  problems: ({ unreadable }) => unreadable.map(({ message }) => message),
});

export const runsCompare = defineOperation({
  name: 'runs compare',
  summary: 'compare two to six runs: what each has reached, and the settings in which they differ',
  details: ['Settings are those of the newest step, with all that temper set changed. Needs no server.'],
  examples: ['temper runs compare demo demo-2'],
  arguments: { runs: { placeholder: 'RUN', repeats: true } },
  flags: {},
  effect: 'reads',
  run: async (input, place) => {
    const { requireRunFile } = await import('../store/records/runs/run-reader.ts');
    const { viewComparison } = await import('../views/runs/compare.ts');
    const store = await place.store();
    for (const run of input.runs) await requireRunFile(store, run);
    return viewComparison({ store }, new URLSearchParams({ runs: input.runs.join(',') }));
  },
  lines: ({ curves, settings }) => {
    const rows = [
      ['step', ...curves.map(({ steps }) => String(steps.at(-1)?.step ?? 0))],
      ['reward', ...curves.map(({ steps }) => formatNumber(steps.at(-1)?.reward))],
      ['held out', ...curves.map(({ evals }) => evals.map(describeHeadline).at(-1) ?? '–')],
      ...settings.map(({ setting, values }) => [setting, ...values]),
    ];
    return [{ head: ['', ...curves.map(({ run }) => run)], rows }];
  },
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
  run: async ({ run }, place): Promise<FoundRun> => (await import('./show-run.ts')).findRun(place, run),
  lines: async (shown) => (await import('./show-run.ts')).shownLines(shown),
});
