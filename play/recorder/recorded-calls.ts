/** The recorded calls of one attempt: their names, and orders that do not depend on timing. */
import type { CallRecord } from '../../store/records/groups/trajectories.ts';

type Named = Pick<CallRecord, 'key' | 'occurrence'>;

export function inRecordOrder(records: readonly CallRecord[]): CallRecord[] {
  return records.toSorted(byLength(({ promptTokenIds }) => promptTokenIds.length));
}

/** The order in which the agent asked, as indices of `inRecordOrder`. For people: it may depend on timing. */
export function askedOrder(records: readonly CallRecord[], asked: readonly string[]): number[] {
  const places = new Map(asked.map((call, place) => [call, place]));
  const placed = inRecordOrder(records).map((call, index) => ({ index, place: places.get(callName(call)) ?? 0 }));
  return placed.toSorted((left, right) => left.place - right.place).map(({ index }) => index);
}

/** The name of a call in its attempt. */
export function callName({ key, occurrence }: Named): string {
  return `${key}/${occurrence}`;
}

/** The id that an agent sees: short, and the same in every dialect but for what stands before it. */
export function callId({ key, occurrence }: Named): string {
  return `${key.slice(0, 24)}-${occurrence}`;
}

/** An order of calls that does not depend on timing: by what `lengthOf` says of their prompts, then by their names. */
export function byLength<C extends Named>(lengthOf: (call: C) => number) {
  return (left: C, right: C): number => {
    const longer = lengthOf(left) - lengthOf(right);
    if (longer !== 0) return longer;
    if (left.key !== right.key) return left.key < right.key ? -1 : 1;
    return left.occurrence - right.occurrence;
  };
}
