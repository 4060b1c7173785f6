/** Checks all rewards before it gives the first, and wakes the run once a group is complete. */
import { badConfig, WorkFailed } from '../core/contract/failures.ts';
import { plural } from '../core/reports/format.ts';
import { openGiver, type GivingAnswer } from '../store/records/rewards/give-reward.ts';
import type { Place } from './operation.ts';
import { readFinite, readMetrics, readRewards, type PlacedReward } from './read-rewards.ts';
import { wakeOverServer } from './wake.ts';

export interface GivenRewards {
  readonly run: string;
  readonly rewards: readonly {
    readonly attempt: string;
    readonly reward: number;
    readonly outcome: 'given' | 'same';
    /** Attempts of its group that still wait. */
    readonly missing: number;
  }[];
  /** Whether the run learned of a complete group; null: there is none. */
  readonly awake: 'told' | 'not running' | 'no server' | null;
}

interface Given {
  readonly run: string;
  readonly by: string | null;
  readonly note: string | null;
}

interface OneReward extends Given {
  readonly attempt: string;
  readonly value: string;
  /** `NAME=VALUE` */
  readonly metric: readonly string[];
  readonly key: string | null;
}

export function giveReward(place: Place, { run, attempt, value, metric, ...author }: OneReward): Promise<GivenRewards> {
  const given = { attempt, reward: readFinite(value, 'VALUE'), metrics: readMetrics(metric), ...author };
  return giveAll(place, run, [{ given, place: null }]);
}

export async function importRewards(place: Place, { run, file, ...author }: Given & { file: string }) {
  await openGiver(await place.store(), run);
  return giveAll(place, run, await readRewards(file, run, place.cwd, author));
}

async function giveAll(place: Place, run: string, rewards: readonly PlacedReward[]): Promise<GivenRewards> {
  const store = await place.store();
  const giver = await openGiver(store, run);
  for (const { given, place: line } of rewards) {
    const refusal = await giver.check(given);
    if (refusal === null) continue;
    throw badConfig(line === null ? refusal.message : `${line}: ${refusal.message}; no reward of the file was given`);
  }
  const answers: GivingAnswer[] = [];
  for (const { given } of rewards) answers.push(await giver.give(given));
  const isComplete = answers.some((each) => each.outcome !== 'refused' && each.missing === 0 && !each.isDecided);
  const awake = isComplete ? await wake(place, run) : null;
  const refused = answers.filter((answer) => answer.outcome === 'refused');
  // Checked before, they were decided meanwhile.
  if (refused.length > 0)
    throw new WorkFailed(`${plural(refused.length, 'reward')} came too late: ${refused[0]!.message}`);
  const given = rewards.flatMap(({ given: { attempt } }, index) => {
    const answer = answers[index]!;
    if (answer.outcome === 'refused') return [];
    return [{ attempt, reward: answer.row.reward, outcome: answer.outcome, missing: answer.missing }];
  });
  return { run, rewards: given, awake };
}

async function wake(place: Place, run: string): Promise<GivenRewards['awake']> {
  const isAwake = await wakeOverServer(place, await place.store(), run);
  if (isAwake === null) return 'no server';
  return isAwake ? 'told' : 'not running';
}
