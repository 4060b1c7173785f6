/** Attempts that wait for a reward from outside, oldest first. */
import { deadlineOf } from '../../core/plan/given.ts';
import { listAwaited, type AwaitedGroup } from '../../store/records/rewards/awaited-groups.ts';
import type { AttemptRow, AwaitedRewardsView } from '../api/attempt-views.ts';
import type { ViewContext } from '../context/context.ts';
import { attemptRows } from '../rows/attempt-row.ts';
import { readRunInStore } from './step-facts.ts';

export async function viewAwaitedRewards({ store }: ViewContext, run: string): Promise<AwaitedRewardsView> {
  const { config } = (await readRunInStore({ store }, run)).file;
  if (config.external === undefined) return { rows: [], deadline: null };
  const groups = await listAwaited(store, run);
  const deadlines = groups.flatMap(({ playedAt, missing }) =>
    missing.length === 0 ? [] : (deadlineOf(config, playedAt ?? undefined) ?? []),
  );
  return {
    rows: groups.flatMap(rowsOfMissing),
    deadline: deadlines.length === 0 ? null : new Date(Math.min(...deadlines)).toISOString(),
  };
}

function rowsOfMissing({ place, rollouts, missing }: AwaitedGroup): AttemptRow[] {
  const waiting = new Set(missing.map(({ attempt }) => attempt));
  const rows = attemptRows({ place, group: place.group, rollouts, judged: null, times: null, use: 'unjudged' });
  // The agent's own reward is not the one that it waits for.
  return rows.filter(({ attempt }) => waiting.has(attempt)).map((row) => ({ ...row, reward: null, advantage: null }));
}
