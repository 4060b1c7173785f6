/** The calls of one attempt: numbered in the order in which the agent asks, recorded as they are answered. */
import type { CallRecord, CallRequest } from '../../store/records/trajectories.ts';
import type { CallFrame } from './answer.ts';
import { callKey } from './request.ts';

export class RecordedCalls {
  readonly #occurrences = new Map<string, number>();
  readonly #asked: string[] = [];
  readonly #records: CallRecord[] = [];

  /** Identical calls are told apart by the order in which they are asked. */
  number(request: CallRequest, label: string | null): CallFrame {
    const key = callKey(request, label);
    const occurrence = this.#occurrences.get(key) ?? 0;
    this.#occurrences.set(key, occurrence + 1);
    this.#asked.push(callName({ key, occurrence }));
    return { key, occurrence, label, request };
  }

  add(records: readonly CallRecord[]): void {
    this.#records.push(...records);
  }

  /** In an order that does not depend on timing. */
  inRecordOrder(): CallRecord[] {
    return this.#records.toSorted(compareCalls);
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

function compareCalls(left: CallRecord, right: CallRecord): number {
  const byLength = left.promptTokenIds.length - right.promptTokenIds.length;
  if (byLength !== 0) return byLength;
  if (left.key !== right.key) return left.key < right.key ? -1 : 1;
  return left.occurrence - right.occurrence;
}
