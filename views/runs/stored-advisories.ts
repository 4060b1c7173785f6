/** Advisories of a run, and the attempts that they compare as its files have them, without the index. */
import { branchOfStep } from '../../core/names/lineage.ts';
import type { RunState, StepSummary } from '../../core/contract/contract.ts';
import { rolloutsKey, type StepPlace } from '../../store/layout.ts';
import { listGroups, readVerdict } from '../../store/records/groups/group-files.ts';
import { decodeWithoutNumbers } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptRow } from '../api/attempt-views.ts';
import { attemptRows } from '../rows/attempt-row.ts';
import { byLevel, findAdvisories, type FoundAdvisory } from './advisories.ts';
import { isNamedReward } from '../../core/rules/named-rewards.ts';
import { findDominantReward, type RewardedAttempt } from './dominant-reward.ts';

/** At most `COMPARED_ATTEMPTS`, of groups that have a verdict. */
export async function readNewestAttempts(store: Store, state: RunState | null): Promise<AttemptRow[]> {
  if (state === null) return [];
  const { run, step: last, lineage } = state;
  const rows: AttemptRow[] = [];
  for (let step = last; step > 0 && rows.length < COMPARED_ATTEMPTS; step--) {
    const place = { run, branch: branchOfStep(lineage, step), step };
    for (const group of await listGroups(store, place)) rows.push(...(await readJudgedRows(store, place, group)));
  }
  return rows.slice(0, COMPARED_ATTEMPTS);
}

/** None of a group without its verdict: a reward by name is part of it. */
async function readJudgedRows(store: Store, place: StepPlace, group: number): Promise<AttemptRow[]> {
  const key = rolloutsKey({ ...place, group });
  const [bytes, verdict] = await Promise.all([store.read(key), readVerdict(store, { ...place, group })]);
  if (bytes === null || verdict === null) return [];
  const rollouts = await decodeWithoutNumbers(bytes, key);
  return attemptRows({ place, group, rollouts, judged: verdict.judged, times: null, use: 'trained' });
}

/** Attempts over which rewards by name are compared: the newest ones. */
export const COMPARED_ATTEMPTS = 400;

interface AdvisedRun {
  readonly state: Pick<RunState, 'evals'> | null;
  readonly steps: readonly StepSummary[];
}

/** `newestAttempts` is asked only where there are rewards to compare. */
export async function listAdvisories(
  run: AdvisedRun,
  newestAttempts: () => Promise<readonly RewardedAttempt[]>,
): Promise<FoundAdvisory[]> {
  const attempts = hasSeveralRewards(run.steps) ? await newestAttempts() : [];
  const found = [...findAdvisories(run.steps, run.state?.evals), findDominantReward(attempts)];
  return byLevel(found.filter((each) => each !== null));
}

function hasSeveralRewards(steps: readonly StepSummary[]): boolean {
  return Object.keys(steps.at(-1)?.metrics ?? {}).filter(isNamedReward).length > 1;
}
