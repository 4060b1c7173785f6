import type { AttemptView } from '../api/attempt-views.ts';
import { NotFound, type ViewContext } from '../context/context.ts';
import { readBefore, withBefore } from './before.ts';
import { describeGroup, factsOf } from './group.ts';
import { parseAttemptOf } from './place.ts';
import { requirePlayed, type PlayedRecords } from './read-played.ts';
import { readRunInStore } from './step-facts.ts';
import { viewAttempt, WHOLE_ATTEMPT } from './view-attempt.ts';
import { listReplays, readReplay } from '../../store/records/groups/replays.ts';
import type { RolloutHeader } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';

export async function viewAttemptOf({ store }: ViewContext, run: string, id: string): Promise<AttemptView> {
  const { place, attempt } = parseAttemptOf(run, id);
  const facts = await readRunInStore({ store }, run);
  const played = await requirePlayed(store, place, attempt);
  const index = indexOf(played, attempt, run, id);
  const group = await describeGroup(store, facts, played);
  const view = viewAttempt(played.rollouts.attempts[index]!, factsOf(group, played, index), WHOLE_ATTEMPT);
  const before = (await readBefore(store, played)).get(attempt);
  return { ...withBefore(view, before), ...(await viewReplays(store, run, id, played.rollouts.header)) };
}

/** The record of an attempt as it is stored. */
export async function viewRawAttempt({ store }: ViewContext, run: string, id: string): Promise<object> {
  const { place, attempt } = parseAttemptOf(run, id);
  await readRunInStore({ store }, run);
  const played = await requirePlayed(store, place, attempt);
  return played.rollouts.attempts[indexOf(played, attempt, run, id)]!;
}

/** Its place among those that were played together. */
export function indexOf({ rollouts }: PlayedRecords, attempt: number, run: string, id: string): number {
  const index = rollouts.attempts.findIndex((record) => record.attempt === attempt);
  if (index !== -1) return index;
  throw new NotFound(`run ${run} has no attempt ${id}: its group has ${rollouts.attempts.length}`);
}

/** Replays of the same attempt that are shown. */
const MOST_REPLAYS = 100;

/** Replays of an attempt, and what a replay was made of. */
async function viewReplays(
  store: Store,
  run: string,
  attempt: string,
  { replay }: RolloutHeader,
): Promise<Pick<AttemptView, 'replays' | 'replayOf'>> {
  if (replay !== undefined) {
    const { attempt: origin, fromCall, model } = replay;
    return { replays: [], replayOf: { attempt: origin, fromTurn: fromCall, model } };
  }
  const ids = (await listReplays(store, run, attempt)).slice(0, MOST_REPLAYS);
  const replays = (await Promise.all(ids.map((id) => readReplay(store, run, id)))).filter((found) => found !== null);
  return {
    replays: replays.map(({ id, header, record }) => ({
      id: `replay.${id}`,
      fromTurn: header.replay.fromCall,
      model: header.replay.model,
      reward: record.reward,
      failure: record.failure?.type ?? null,
    })),
  };
}
