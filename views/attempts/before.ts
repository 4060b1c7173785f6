/** The scenarios of an evaluation in the one before training. */
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptView, BeforeView } from '../api/attempt-views.ts';
import { attemptIdOf, type PlayPlace } from './place.ts';
import { readPlayed, type PlayedRecords } from './read-played.ts';

/** By the number of the attempt; nothing for a group, and for the evaluation before training itself. */
export async function readBefore(
  store: Store,
  { place, rollouts }: PlayedRecords,
): Promise<ReadonlyMap<number, BeforeView>> {
  if (place.kind !== 'eval' || place.step === 0) return new Map();
  const first: PlayPlace = { kind: 'eval', run: place.run, branch: 0, step: 0 };
  const played = await readPlayed(store, first, 'none');
  if (played === null) return new Map();
  const found = new Map(
    keyed(played.rollouts.attempts).map(([key, { attempt, reward }]) => [
      key,
      { id: attemptIdOf(first, attempt), reward },
    ]),
  );
  const pairs = keyed(rollouts.attempts).map(([key, { attempt }]) => [attempt, found.get(key)] as const);
  return new Map(pairs.flatMap(([attempt, before]) => (before === undefined ? [] : [[attempt, before] as const])));
}

export function withBefore(attempt: AttemptView, before: BeforeView | undefined): AttemptView {
  return before === undefined ? attempt : { ...attempt, before };
}

/** With roles, a scenario is played several times: each time has its own key. */
function keyed(attempts: readonly AttemptRecord[]): [string, AttemptRecord][] {
  const times = new Map<string, number>();
  return attempts.map((record) => {
    const name = String(record.scenario ?? record.scenarioId);
    const time = times.get(name) ?? 0;
    times.set(name, time + 1);
    return [`${time} ${name}`, record];
  });
}
