/**
 * Lossless record of played attempts: gzipped JSON lines, a header and then one line per attempt. The bytes are hashed,
 * so they do not depend on time, process or host.
 */
import { gunzip, gzip } from 'node:zlib';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';

import { MAX_ROLLOUT_BYTES } from '../../core/wire-constants.ts';
import { badConfig, type FailureType, TemperError } from '../../core/failures.ts';
import { wellFormedJson } from '../../core/json-text.ts';
import { requireKnownSchema } from '../../core/later-version.ts';
import type { Metrics } from '../../core/statistics.ts';

/** A message as it went over the wire; kept as it came. */
export interface ChatMessage {
  role: string;
  content?: unknown;
  tool_calls?: unknown;
  [member: string]: unknown;
}

/** Request with the run's defaults filled in; `model` and `seed` follow from the place. */
export interface CallRequest {
  messages: ChatMessage[];
  temperature?: number;
  max_tokens?: number;
  tools?: unknown[];
  stop?: string | string[];
  n?: number;
  [parameter: string]: unknown;
}

/** One choice of one answered call. */
export interface CallRecord {
  key: string;
  occurrence: number;
  label: string | null;
  request: CallRequest;
  message: ChatMessage;
  finishReason: string;
  promptTokenIds: number[];
  tokenIds: number[];
  logprobs: number[];
  adapterSha256: string | null;
  /** Role that called, where it is trained or a checkpoint plays it; absent without roles. */
  role?: string;
  /**
   * Number of earlier turns of its attempt. Present if some turn of the group has a reward of its own, or if a judge
   * reads an attempt with sequential calls in another order than that of the record.
   */
  turn?: number;
  /** Reward of this turn from the agent; part of the attempt's reward. */
  reward?: number;
}

/** One call of a hosted model: never trained, so its tokens are counts. */
export interface HostedCallRecord {
  /** Name used by the agent: `openai/gpt-5-mini`. */
  model: string;
  key: string;
  occurrence: number;
  label: string | null;
  /** Role that called; absent without roles. */
  role?: string;
  request: CallRequest;
  choices: { message: ChatMessage; finishReason: string }[];
  /** Error of the model's server; null if it answered. */
  refusal: string | null;
  /** Tokens counted by the server; null if it reports none. */
  promptTokens: number | null;
  completionTokens: number | null;
  /** Null if unknown. */
  usd: number | null;
}

interface AttemptFailure {
  type: FailureType;
  message: string;
}

export interface AttemptRecord {
  attempt: number;
  /** In an evaluation alone. */
  scenario?: number;
  scenarioId?: string;
  status: 'ok' | 'failed';
  failure: AttemptFailure | null;
  /** With roles, the mean of the trained ones' rewards. */
  reward: number | null;
  /** Rewards of the roles that played; absent without roles, and if the attempt failed. */
  roleRewards?: Record<string, number>;
  metrics: Metrics;
  logs: string[];
  /** A call was cut at `max_tokens`, or refused because its prompt had outgrown the model. */
  truncated: boolean;
  /** Journaled answers that a repetition did not ask for again: the agent is not deterministic. */
  unclaimedAnswers: number;
  calls: CallRecord[];
  /** Calls of hosted models, in an order that does not depend on timing. */
  hostedCalls?: HostedCallRecord[];
  /** In a script's own loop alone. */
  trajectory?: TrajectoryRecord;
}

/** A conversation as a script put it down: messages, and choices as the indices of their calls. */
export interface HistoryRecord {
  messages: (ChatMessage | { call: number })[];
  tools: unknown[] | null;
}

/** Members of a script's trajectory beyond its calls, lossless. */
interface TrajectoryRecord {
  history: HistoryRecord;
  additionalHistories: HistoryRecord[];
  metadata: Record<string, string | number | boolean | null>;
  /** The judge's explanation. */
  explanation: string | null;
  /** Answered calls whose choices are in no history: never trained. */
  otherCalls: CallRecord[];
  /** The trajectory's own reward, where turns have rewards beside it. */
  outcome?: number;
  /** With roles, whose trajectories these are: each role that played has the next so many histories and lines of the log. */
  roles?: Record<string, RoleTrajectoryRecord>;
}

/** Members of one role's trajectory in an attempt of several roles. */
export interface RoleTrajectoryRecord {
  histories: number;
  logs: number;
  metadata: TrajectoryRecord['metadata'];
  explanation: string | null;
}

export interface RolloutHeader {
  schema: 1;
  inputsSha256: string;
  branch: number;
  step: number;
  /** Group, scenario and its id are here for a group, and with each attempt in an evaluation. */
  group?: number;
  scenarioId?: string;
  scenario?: number;
  adapterSha256: string | null;
  attempts: number;
  /** In a script's own loop: what the group is known by, and whether the script took it out after it was played. */
  metadata?: TrajectoryRecord['metadata'];
  isDropped?: boolean;
  /** In a replay alone. */
  replay?: ReplayOrigin;
}

/** Origin of a replay: its calls before `fromCall` are those of the attempt. */
export interface ReplayOrigin {
  /** `0.3.2.5`, or `eval.0.3.5`. */
  attempt: string;
  rolloutsSha256: string;
  /** 0-based, in the order in which the agent asked. */
  fromCall: number;
  /** The model that answered from there on: `demo@12`, or a hosted one. */
  model: string;
}

export interface Rollouts {
  header: RolloutHeader;
  attempts: AttemptRecord[];
}

export interface Judged {
  schema: 1;
  inputsSha256: string;
  rolloutsSha256: string;
  judge: string;
  /** One for each attempt; null if discarded. */
  rewards: (number | null)[];
  /** Rewards by attempt and role that played; null if discarded. Absent without roles. */
  roleRewards?: (Record<string, number> | null)[];
  /** Parts of the reward by attempt and call; null if no turn has one. Absent if no attempt has any. */
  turnRewards?: (number[] | null)[];
  /** Rewards that the agent's `rewardGroup` gave by name; null if discarded. Absent if it gave none by name. */
  namedRewards?: (Record<string, number> | null)[];
  /** Metrics that were given with rewards from outside; null if none were. Absent if no attempt has any. */
  givenMetrics?: (Record<string, number> | null)[];
  /** Length penalty of each attempt's advantage. Absent without an overlong buffer. */
  overlongCosts?: number[];
  explanations: (string | null)[];
  /** The judge's scores from 0 to 1, before the agent's reward was weighed in; absent if the agent judged. */
  scores?: (number | null)[];
  /** The verdict's name in the cache; null if there was nothing to judge. */
  verdict?: string | null;
  metrics: Record<string, number>;
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
