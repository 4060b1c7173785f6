/** The calls of one attempt: numbered in the order in which the agent asks, recorded as they are answered. */
import type { CallRecord, CallRequest } from '../../store/records/trajectories.ts';
import type { CallFrame } from './answer.ts';
import { callKey } from './request.ts';

type KeyOf = (request: CallRequest, label: string | null) => string;

export class RecordedCalls {
  readonly #keyOf: KeyOf;
  readonly #occurrences = new Map<string, number>();
  /** By key: what was asked and given up before it was answered. */
  readonly #givenUp = new Map<string, CallFrame[]>();
  readonly #asked: string[] = [];
  readonly #records: CallRecord[] = [];

  constructor(keyOf: KeyOf = callKey) {
    this.#keyOf = keyOf;
  }

  /**
   * Identical calls are told apart by the order in which they are asked. `isRepeated`: its client asks again, and it is
   * the call that was given up, or else the last one.
   */
  number(request: CallRequest, label: string | null, isRepeated = false): { frame: CallFrame; isNew: boolean } {
    const key = this.#keyOf(request, label);
    const occurrence = this.#occurrences.get(key) ?? 0;
    if (isRepeated && occurrence > 0) {
      const givenUp = this.#givenUp.get(key)?.shift();
      return { frame: givenUp ?? { key, occurrence: occurrence - 1, label, request }, isNew: false };
    }
    this.#occurrences.set(key, occurrence + 1);
    this.#asked.push(callName({ key, occurrence }));
    return { frame: { key, occurrence, label, request }, isNew: true };
  }

  giveUp(frame: CallFrame): void {
    this.#givenUp.set(frame.key, [...(this.#givenUp.get(frame.key) ?? []), frame]);
  }

  add(records: readonly CallRecord[]): void {
    this.#records.push(...records);
  }

  /** In an order that does not depend on timing. */
  inRecordOrder(): CallRecord[] {
    return this.#records.toSorted(byLength(({ promptTokenIds }) => promptTokenIds.length));
  }

  /** The order in which the agent asked, as indices of `inRecordOrder`. For people: it may depend on timing. */
  askedOrder(): number[] {
    const places = new Map(this.#asked.map((call, place) => [call, place]));
    const placed = this.inRecordOrder().map((call, index) => ({ index, place: places.get(callName(call)) ?? 0 }));
    return placed.toSorted((left, right) => left.place - right.place).map(({ index }) => index);
  }
}

/** Of the calls of one attempt. */
export function callName({ key, occurrence }: Pick<CallRecord, 'key' | 'occurrence'>): string {
  return `${key}/${occurrence}`;
}

/** As an agent is told: short, and the same in every dialect but for what stands before it. */
export function callId({ key, occurrence }: Pick<CallRecord, 'key' | 'occurrence'>): string {
  return `${key.slice(0, 24)}-${occurrence}`;
}

/** An order of calls that does not depend on timing: by what `lengthOf` says of their prompts, then by their names. */
export function byLength<C extends Pick<CallRecord, 'key' | 'occurrence'>>(lengthOf: (call: C) => number) {
  return (left: C, right: C): number => {
    const longer = lengthOf(left) - lengthOf(right);
    if (longer !== 0) return longer;
    if (left.key !== right.key) return left.key < right.key ? -1 : 1;
    return left.occurrence - right.occurrence;
  };
}
