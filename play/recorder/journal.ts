/**
 * Answers of an activity's attempts, so that a repetition pays for nothing twice. Records are JSON; the first record for
 * a key wins (lowest segment first).
 */
import { decodeRecords, encodeRecord } from '../../store/bytes/journal-records.ts';
import type { JournalSegments } from '../../store/store.ts';

/** Before names that are no agent's. */
const COUNTED = '\0';

interface CallEntry {
  a: number;
  k: string;
  o: number;
  r: unknown;
}

interface OnceEntry {
  a: number;
  n: string;
  v: unknown;
}

/** From this turn on an attempt's calls overlapped: how many waited at once only the first playing can see. */
interface OverlapEntry {
  a: number;
  t: number;
}

interface Answer {
  attempt: number;
  body: unknown;
  claimed: boolean;
}

export type JournalEntry = CallEntry | OnceEntry | OverlapEntry;

export class Journal {
  readonly #segments: JournalSegments;
  readonly #answers = new Map<string, Answer>();
  readonly #values = new Map<string, unknown>();
  readonly #overlaps = new Map<number, number>();

  constructor(segments: JournalSegments) {
    this.#segments = segments;
    for (const segment of segments.existing) for (const payload of decodeSegment(segment)) this.#load(payload);
  }

  /** The recorded answer of a call, once; null where it was never answered. */
  claim(attempt: number, key: string, occurrence: number): unknown {
    const answer = this.#answers.get(callName(attempt, key, occurrence));
    if (answer === undefined) return null;
    answer.claimed = true;
    return answer.body;
  }

  /** `body` is JSON already: it goes to disk as it came. */
  recordCall(attempt: number, key: string, occurrence: number, body: string): void {
    this.#append(`{"a":${attempt},"k":"${key}","o":${occurrence},"r":${body}}`);
  }

  hasValue(attempt: number, name: string): boolean {
    return this.#values.has(valueName(attempt, name));
  }

  value(attempt: number, name: string): unknown {
    return this.#values.get(valueName(attempt, name));
  }

  recordValue(attempt: number, name: string, json: string): void {
    this.#append(`{"a":${attempt},"n":${JSON.stringify(name)},"v":${json}}`);
  }

  /** How often this was called for a name, by all that had this journal. */
  count(attempt: number, name: string): number {
    let number = 1;
    while (this.hasValue(attempt, `${COUNTED}${name} ${number}`)) number += 1;
    this.recordValue(attempt, `${COUNTED}${name} ${number}`, 'true');
    return number;
  }

  /** The earliest turn at which calls of the attempt overlapped; null where none did so far. */
  overlap(attempt: number): number | null {
    return this.#overlaps.get(attempt) ?? null;
  }

  recordOverlap(attempt: number, turn: number): void {
    this.#append(`{"a":${attempt},"t":${turn}}`);
  }

  /** How many recorded answers an attempt has not asked for. */
  unclaimed(attempt: number): number {
    return [...this.#answers.values()].filter((answer) => answer.attempt === attempt && !answer.claimed).length;
  }

  close(): void {
    this.#segments.close();
  }

  #append(payload: string): void {
    this.#segments.append(encodeRecord(payload));
  }

  #load(payload: JournalEntry): void {
    if ('k' in payload) {
      const name = callName(payload.a, payload.k, payload.o);
      if (!this.#answers.has(name)) this.#answers.set(name, { attempt: payload.a, body: payload.r, claimed: false });
    } else if ('t' in payload) {
      this.#overlaps.set(payload.a, Math.min(payload.t, this.#overlaps.get(payload.a) ?? payload.t));
    } else {
      const name = valueName(payload.a, payload.n);
      if (!this.#values.has(name)) this.#values.set(name, payload.v);
    }
  }
}

export function* decodeSegment(segment: Uint8Array): Generator<JournalEntry> {
  for (const payload of decodeRecords(segment)) yield JSON.parse(payload.toString('utf8')) as JournalEntry;
}

function callName(attempt: number, key: string, occurrence: number): string {
  return `${attempt} ${key} ${occurrence}`;
}

function valueName(attempt: number, name: string): string {
  return `${attempt} ${name}`;
}
