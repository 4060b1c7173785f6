/** Replays of an attempt, and what a replay was made of. */
import { listReplays, readReplay } from '../../store/records/replays.ts';
import type { RolloutHeader } from '../../store/records/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptView } from '../api/attempt-views.ts';

/** Replays of the same attempt that are shown. */
const MOST_REPLAYS = 100;

export async function viewReplays(
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
