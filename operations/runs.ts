/** Operations that look at runs. */
import { describeHeadline, formatDuration, formatNumber } from '../core/reports/format.ts';
import { describeCosts, describeUsage, sumUsd } from '../core/rules/costs.ts';
import { formatUsd } from '../core/rules/judge-spending.ts';
import { RUN_ARGUMENT } from './flags.ts';
import { defineOperation } from './operation.ts';
import type { FoundRun, FoundRuns } from './results.ts';

export const runs = defineOperation({
  name: 'runs',
  group: 'Look',
  summary: 'list the runs of this project, newest first',
  arguments: {},
  flags: { agent: { kind: 'text', placeholder: 'NAME', description: 'only the runs of this agent' } },
  effect: 'reads',
  run: async ({ agent }, place): Promise<FoundRuns> => {
    const { runs: all, unreadable } = await (await import('./list-runs.ts')).findRuns(place);
    return { runs: all.filter((row) => agent === null || row.agent === agent), unreadable };
  },
  lines: async (found, { agent }) => {
    if (agent !== null && found.runs.length === 0) return [`no runs of the agent ${agent}`];
    return (await import('./list-runs.ts')).runLines(found);
  },
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

export const costs = defineOperation({
  name: 'costs',
  group: 'Look',
  summary: 'show what a run has cost so far: time, tokens and US dollars of each step, by cause',
  details: [
    'Causes are hardware (gpu), the judge, hosted models, and hosted models in evaluations (eval). The total is over all',
    'branches, because a rollback refunds nothing. Needs no server.',
  ],
  examples: ['temper costs demo', 'temper costs demo --json'],
  arguments: { run: RUN_ARGUMENT },
  flags: {},
  effect: 'reads',
  run: async ({ run }, place) => {
    const { readSteps, requireRun } = await import('../store/records/runs/run-reader.ts');
    const store = await place.store();
    const { state } = await requireRun(store, run);
    const steps = (await readSteps(store, run)).map(({ step, usage = null, costs: spent = null }) => {
      return { step, usage, costs: spent };
    });
    return { run, total: state?.costs ?? null, steps };
  },
  lines: ({ run, total, steps }) => {
    if (total === null) return [`${run} has recorded no costs yet`];
    const causes = (['gpu', 'judge', 'hosted', 'eval'] as const).filter((cause) => total.usd[cause] !== undefined);
    const dollars = (usd: number | undefined): string => (usd === undefined ? '–' : `$${formatUsd(usd)}`);
    const rows = steps.map(({ step, usage, costs: spent }) => [
      String(step),
      spent === null ? '–' : formatDuration(spent.seconds),
      usage === null ? '–' : describeUsage(usage),
      ...causes.map((cause) => dollars(spent?.usd[cause])),
      ...(causes.length === 0
        ? []
        : [dollars(spent === null ? undefined : sumUsd(spent.usd)), dollars(spent?.cumulativeUsd)]),
    ]);
    const head = ['step', 'time', 'tokens', ...causes, ...(causes.length === 0 ? [] : ['step cost', 'so far'])];
    return [
      ...(rows.length === 0 ? [] : [{ head, rows }]),
      `time    ${formatDuration(total.seconds)}`,
      `tokens  ${describeUsage(total.usage)}`,
      `cost    ${describeCosts(total) ?? 'nothing of it has a price; pass --gpu-usd-per-hour, or set prices in temporal.config.ts'}`,
    ];
  },
});
