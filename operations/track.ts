/** Delivers a run to trackers, and shows what they have. */
import { RUN_ARGUMENT } from './flags.ts';
import { defineOperation } from './operation.ts';
import type { Tracked } from './results.ts';

export const track = defineOperation({
  name: 'track',
  group: 'Look',
  summary: 'send a run to a tracker that it began without, or show what trackers have',
  details: [
    'With --to, the next steps of a running run go to the tracker; with --backfill, all steps so far, too. A run that has',
    'ended is sent by this command itself, which needs no server. Without --to, you see what each tracker has.',
    'A tracker is wandb, mlflow, trackio, csv, or a name of track in temporal.config.ts; otlp, langfuse, weave,',
    'mlflow-traces, or a name of trace there, get attempts as traces. Keys are read from the environment.',
  ],
  examples: ['temper track demo', 'temper track demo --to wandb --backfill', 'temper track demo --to mlflow --to csv'],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    to: { kind: 'texts', placeholder: 'NAME', description: 'tracker to send it to; repeatable' },
    backfill: { kind: 'boolean', description: 'send the steps that the run has taken already, too', needs: ['to'] },
  },
  effect: 'changes',
  says: ({ run, to, backfill }) =>
    Promise.resolve(
      to.length === 0
        ? 'Nothing changes; you see what each tracker has.'
        : `${run} goes to ${to.join(', ')}${backfill ? ', from its first step on' : ''}.`,
    ),
  run: async (input, place): Promise<Tracked> => (await import('./track-run.ts')).trackRun(place, input),
  lines: ({ run, byWorkers, trackers }, { to }) => {
    const asked = trackers.filter(({ target }) => to.includes(target) && !byWorkers.includes(target));
    if (to.length > 0)
      return [
        ...byWorkers.map((name) => `the workers send ${run} to ${name}; see temper track ${run}`),
        ...asked.map(({ target, step, url }) => `${target} has ${run} up to step ${step}${url ? `: ${url}` : ''}`),
      ];
    if (trackers.length === 0)
      return [`no tracker has ${run}; send it to one with temper track ${run} --to wandb --backfill`];
    return trackers.flatMap(describe);
  },
});

function describe({ target, branch, step, evaluations, ended, url, failure }: Tracked['trackers'][number]): string[] {
  const place = branch === 0 ? `step ${step}` : `step ${step} of branch ${branch}`;
  const end = ended === null ? '' : `, and its end (${ended})`;
  return [
    `${target}: up to ${place}, ${evaluations} evaluations${end}${url === null ? '' : ` · ${url}`}`,
    ...(failure === null ? [] : [`  it has no more yet: ${failure}`]),
  ];
}
