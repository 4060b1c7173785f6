/** A played attempt as a file that people keep beside their agent: what it was asked and answered, ready to be played again. */
import { z } from 'zod';

import { firstIssue, type RolloutConfig } from '../../core/contract/contract.ts';
import { badConfig, requireKnownSchema } from '../../core/contract/failures.ts';
import { parseJson } from '../../core/text/json-text.ts';
import type { Metrics } from '../../core/numbers/statistics.ts';
import { encodeRecord } from '../../store/bytes/journal-records.ts';
import type { CallRecord, CallRequest } from '../../store/records/groups/trajectories.ts';
import type { Scenario } from '../agent.ts';
import type { Completion } from '../connections/completion.ts';
import type { JournalEntry } from '../recorder/journal.ts';
import { playersOutside, type RolePlayers } from '../roles/role-definition.ts';
import { callName } from '../recorder/recorded-calls.ts';
import type { RequestMode } from '../recorder/request.ts';
import type { SingleAttempt, SingleOptions } from '../single-attempt.ts';

export interface SavedCall {
  readonly key: string;
  readonly occurrence: number;
  readonly label: string | null;
  /** Role that called; absent without roles. */
  readonly role?: string;
  readonly request: CallRequest;
  /** The engine's answer. */
  readonly answer: Completion;
}

/** A call of a hosted model; its answer is what its server said, or that it refused. */
export interface SavedHostedCall extends Omit<SavedCall, 'answer'> {
  /** The agent's name for it: `openai/gpt-5-mini`. */
  readonly model: string;
  readonly answer: object;
}

export interface SavedAttempt {
  readonly schema: 1;
  readonly agent: string;
  readonly model: string;
  readonly adapterSha256: string | null;
  /** Rules for its requests. */
  readonly mode: RequestMode;
  /** True for an evaluation, which must not be trained on; absent otherwise. */
  readonly isHeldOut?: true;
  readonly rollout: RolloutConfig;
  readonly scenario: Scenario;
  readonly scenarioIndex: number;
  readonly attempt: number;
  /** Seeds follow from it. */
  readonly place: { readonly seed: number; readonly branch: number; readonly step: number };
  /** In the order in which the agent asked. */
  readonly calls: readonly SavedCall[];
  /** Absent where the agent called no hosted model. */
  readonly hostedCalls?: readonly SavedHostedCall[];
  /** Values of `once` by name. */
  readonly once: Readonly<Record<string, unknown>>;
  /** The turn from which calls overlapped; null where none did. */
  readonly overlap: number | null;
  readonly reward: number | null;
  /** Players of the roles; absent without roles. */
  readonly players?: RolePlayers;
  readonly roleRewards?: Readonly<Record<string, number>>;
  /** A call met its token limit, or the conversation outgrew the model. Absent where not. */
  readonly truncated?: true;
  readonly metrics: Readonly<Metrics>;
  readonly failure: string | null;
  readonly logs: readonly string[];
}

export function saveAttempt(
  { record, asked, entries }: SingleAttempt,
  options: SingleOptions,
  isHeldOut = false,
): SavedAttempt {
  const { agent, policy, mode, rollout, place, planned } = options;
  const answers = firstOf(entries.flatMap((entry) => ('k' in entry ? [[`${entry.k}/${entry.o}`, entry.r]] : [])));
  const hostedCalls = record.hostedCalls?.flatMap((call) => {
    const { model, key, occurrence, label, role, request } = call;
    const answer = answers.get(callName(call));
    const asking = { model, key, occurrence, label, ...(role !== undefined && { role }), request };
    return answer === undefined ? [] : [{ ...asking, answer: answer as object }];
  });
  return {
    schema: 1,
    agent: agent.name,
    model: policy.model,
    adapterSha256: policy.adapterSha256,
    mode,
    ...(isHeldOut && { isHeldOut }),
    rollout,
    scenario: planned.scenario,
    scenarioIndex: planned.scenarioIndex,
    attempt: planned.attempt,
    place,
    calls: firstChoices(asked).flatMap((call) => {
      const { key, occurrence, label, role, request } = call;
      const answer = answers.get(callName(call));
      const asking = { key, occurrence, label, ...(role !== undefined && { role }), request };
      return answer === undefined ? [] : [{ ...asking, answer: answer as Completion }];
    }),
    ...(hostedCalls && { hostedCalls }),
    once: Object.fromEntries(firstOf(entries.flatMap((entry) => ('n' in entry ? [[entry.n, entry.v]] : [])))),
    overlap: overlapOf(entries),
    reward: record.reward,
    ...(agent.roles && { players: planned.players ?? playersOutside(agent.roles, () => policy) }),
    ...(record.roleRewards && { roleRewards: record.roleRewards }),
    ...(record.truncated && { truncated: record.truncated }),
    metrics: record.metrics,
    failure: record.failure?.message ?? null,
    logs: record.logs,
  };
}

/** Of two entries under one name, a journal says the first. */
function firstOf(entries: readonly [string, unknown][]): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const [name, value] of entries) if (!values.has(name)) values.set(name, value);
  return values;
}

/** A call of several choices has as many records. */
export function firstChoices(calls: readonly CallRecord[]): CallRecord[] {
  return [...new Map(calls.toReversed().map((call) => [callName(call), call])).values()].toReversed();
}

function overlapOf(entries: readonly JournalEntry[]): number | null {
  const turns = entries.flatMap((entry) => ('t' in entry ? entry.t : []));
  return turns.length === 0 ? null : Math.min(...turns);
}

interface Journaled extends Pick<SavedAttempt, 'attempt' | 'once' | 'overlap'> {
  readonly calls: readonly Answered[];
  readonly hostedCalls?: readonly Answered[];
}

interface Answered extends Pick<SavedCall, 'key' | 'occurrence'> {
  readonly answer: object;
}

/** The journal that a repetition of the attempt would find. */
export function journalOf({ attempt: a, calls, hostedCalls = [], once, overlap }: Journaled): Uint8Array {
  const entries: JournalEntry[] = [
    ...[...calls, ...hostedCalls].map(({ key, occurrence, answer }) => ({ a, k: key, o: occurrence, r: answer })),
    ...Object.entries(once).map(([n, v]) => ({ a, n, v })),
    ...(overlap === null ? [] : [{ a, t: overlap }]),
  ];
  return Buffer.concat(entries.map((entry) => encodeRecord(JSON.stringify(entry))));
}

const Message = z.looseObject({ role: z.string() });
const SavedRequest = z.looseObject({ messages: z.array(Message) });
const SavedCallSchema = z.looseObject({
  key: z.string(),
  occurrence: z.number(),
  request: SavedRequest,
  answer: z.looseObject({ choices: z.array(z.looseObject({ message: Message })) }),
});

const Seated = z.object({ model: z.string(), adapterSha256: z.string().nullable() });

const SavedSchema = z.looseObject({
  schema: z.literal(1),
  agent: z.string(),
  model: z.string(),
  mode: z.enum(['train', 'eval', 'text']),
  scenario: z.looseObject({ id: z.string() }),
  attempt: z.number(),
  calls: z.array(SavedCallSchema),
  hostedCalls: z.array(SavedCallSchema.extend({ model: z.string(), answer: z.looseObject({}) })).optional(),
  once: z.record(z.string(), z.unknown()),
  players: z.object({ trained: z.record(z.string(), z.string()), seated: z.record(z.string(), Seated) }).optional(),
  roleRewards: z.record(z.string(), z.number()).optional(),
});

export function parseSavedAttempt(text: string, file: string): SavedAttempt {
  const value = parseJson(text) ?? null;
  requireKnownSchema(value, file);
  const parsed = SavedSchema.safeParse(value);
  if (parsed.success) return parsed.data as unknown as SavedAttempt;
  const rule = `${file} must be an attempt that temper try --save has written`;
  throw badConfig(`${rule}: ${firstIssue(parsed.error)}; save it again`);
}
