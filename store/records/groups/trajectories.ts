/**
 * Lossless record of played attempts: gzipped JSON lines, a header and then one line per attempt. The bytes are hashed,
 * so they do not depend on time, process or host.
 */
import { gunzip, gzip } from 'node:zlib';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { AttemptRecord, CallRecord, RolloutHeader } from '../../../core/contract/records.ts';
import { badConfig, requireKnownSchema, TemperError } from '../../../core/contract/failures.ts';
import { wellFormedJson } from '../../../core/text/json-text.ts';
import { MAX_ROLLOUT_BYTES } from '../../../core/contract/wire-constants.ts';

export type {
  AttemptRecord,
  CallRecord,
  CallRequest,
  ChatMessage,
  HistoryRecord,
  HostedCallRecord,
  Judged,
  ReplayOrigin,
  RoleTrajectoryRecord,
  RolloutHeader,
} from '../../../core/contract/records.ts';

export interface Rollouts {
  header: RolloutHeader;
  attempts: AttemptRecord[];
}

/** Calls in playing order as far as recorded: calls of one turn, or without one, in the order of the record. */
export function inPlayOrder(calls: readonly CallRecord[]): CallRecord[] {
  return calls.toSorted((left, right) => (left.turn ?? 0) - (right.turn ?? 0));
}

/** At its token limit. */
export function wasCut({ finishReason }: CallRecord): boolean {
  return finishReason === 'length';
}

/** About 20 ms of parsing. */
const YIELD_BYTES = 2_000_000;
const NEWLINE = 10;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Byte in which gzip names the operating system; overwritten to be independent of it. */
const GZIP_SYSTEM_BYTE = 9;
const UNKNOWN_SYSTEM = 255;

export async function encodeRollouts({ header, attempts }: Rollouts): Promise<Uint8Array> {
  const lines = [header, ...attempts].map((line) => `${wellFormedJson(JSON.stringify(line))}\n`).join('');
  const length = Buffer.byteLength(lines);
  if (length > MAX_ROLLOUT_BYTES) throw tooLarge(length, header);
  // Level 1: a step waits for these bytes, and token ids compress well enough. Node's gzip leaves the time at zero.
  const bytes = await compress(lines, { level: 1 });
  bytes[GZIP_SYSTEM_BYTE] = UNKNOWN_SYSTEM;
  return bytes;
}

export function decodeRollouts(bytes: Uint8Array, name: string): Promise<Rollouts> {
  return decodeLines(bytes, name, (line) => JSON.parse(line.toString('utf8')) as unknown);
}

/** Without prompts' tokens and log-probabilities, which most bytes are of: in a third of the time and memory. */
export function decodeWithoutNumbers(bytes: Uint8Array, name: string): Promise<Rollouts> {
  return decodeLines(bytes, name, parseWithoutNumbers);
}

/** One attempt whole, and the others without these numbers. */
export function decodeWithNumbersOf(attempt: number, bytes: Uint8Array, name: string): Promise<Rollouts> {
  return decodeLines(bytes, name, (line) => {
    const parsed = parseWithoutNumbers(line) as Partial<AttemptRecord>;
    return parsed.attempt === attempt ? (JSON.parse(line.toString('utf8')) as unknown) : parsed;
  });
}

async function decodeLines(bytes: Uint8Array, name: string, parse: (line: Buffer) => unknown): Promise<Rollouts> {
  try {
    const text = await decompress(bytes, { maxOutputLength: MAX_ROLLOUT_BYTES });
    const [header, ...attempts] = await parseLines(text, parse);
    requireKnownSchema(header, name);
    return { header: header as RolloutHeader, attempts: attempts as AttemptRecord[] };
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    const rule = `gzipped JSON lines of at most ${MAX_ROLLOUT_BYTES / 1024 ** 2} MiB`;
    throw new TemperError('StoreCorrupt', `${name} must be ${rule}, but is not; restore it from a copy`, { cause });
  }
}

/** Lets other work go on between the lines of a large file. */
async function parseLines(text: Buffer, parse: (line: Buffer) => unknown): Promise<unknown[]> {
  const parsed: unknown[] = [];
  let [at, yieldedAt] = [0, 0];
  while (at < text.length) {
    const end = text.indexOf(NEWLINE, at);
    const line = text.subarray(at, end < 0 ? text.length : end);
    parsed.push(parse(line));
    at += line.length + 1;
    if (at - yieldedAt < YIELD_BYTES) continue;
    yieldedAt = at;
    await setImmediate();
  }
  return parsed;
}

const LEFT_OUT = ['"promptTokenIds":[', '"logprobs":['].map((start) => Buffer.from(start));
const ARRAY_END = ']'.charCodeAt(0);

function parseWithoutNumbers(line: Buffer): unknown {
  try {
    return JSON.parse(LEFT_OUT.reduce(emptyArrays, line).toString('utf8'));
  } catch {
    // A message may have members of these names that are no arrays of numbers.
    return JSON.parse(line.toString('utf8'));
  }
}

/** `start` begins an array; in a string its quotes would be escaped. */
function emptyArrays(line: Buffer, start: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (let found = line.indexOf(start); found >= 0; found = line.indexOf(start, at)) {
    const from = found + start.length;
    parts.push(line.subarray(at, from));
    const end = line.indexOf(ARRAY_END, from);
    at = end < 0 ? line.length : end;
  }
  return at === 0 ? line : Buffer.concat([...parts, line.subarray(at)]);
}

function tooLarge(length: number, { group }: RolloutHeader): TemperError {
  const [what, flag] = group === undefined ? ['an evaluation', '--eval-scenarios'] : ['a group', '--group-size'];
  const [most, found] = [MAX_ROLLOUT_BYTES, length].map((bytes) => `${Math.round(bytes / 1024 ** 2)} MiB`);
  return badConfig(
    `the attempts of ${what} must be at most ${most} as JSON, got ${found}; lower ${flag}, --max-tokens or the number of calls of an attempt`,
  );
}
