/**
 * Records of a run that only TypeScript parses: attempts, verdicts, answers of judges, served answers. Files of a store are
 * read with `tolerant(…)` of `store/records/file-schemas.ts`, since a later version may have added members.
 */
import { z } from 'zod';

import { GroupResult } from './groups.ts';
import { count, GroupRef } from './values.ts';
import { FAILURES, type FailureType } from './failures.ts';
import { RECORD_SCHEMA } from './wire-constants.ts';

const schema = z.literal(RECORD_SCHEMA);
const numbers = z.array(z.number());
const byName = z.record(z.string(), z.number());
/** One for each attempt. */
const byAttempt = <T extends z.ZodType>(value: T) => z.array(value.nullable());
const metadata = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));

/** A message as it went over the wire; kept as it came. */
export interface ChatMessage {
  role: string;
  content?: unknown;
  tool_calls?: unknown;
  [member: string]: unknown;
}
const ChatMessage: z.ZodType<ChatMessage> = z.looseObject({ role: z.string() });

/** Request with the run's defaults filled in; `model` and `seed` follow from the place. Parameters are as agents sent them. */
export interface CallRequest {
  messages: ChatMessage[];
  temperature?: number;
  max_tokens?: number;
  tools?: unknown[];
  stop?: string | string[];
  n?: number;
  [parameter: string]: unknown;
}
const CallRequest: z.ZodType<CallRequest> = z.looseObject({ messages: z.array(ChatMessage) });

/** One choice of one answered call. */
export const CallRecord = z.strictObject({
  key: z.string(),
  occurrence: z.number(),
  label: z.string().nullable(),
  request: CallRequest,
  message: ChatMessage,
  finishReason: z.string(),
  promptTokenIds: numbers,
  tokenIds: numbers,
  logprobs: numbers,
  adapterSha256: z.string().nullable(),
  /** Role that called, where it is trained or a checkpoint plays it; absent without roles. */
  role: z.string().exactOptional(),
  /**
   * Number of earlier turns of its attempt. Present if some turn of the group has a reward of its own, or if a judge
   * reads an attempt with sequential calls in another order than that of the record.
   */
  turn: z.number().exactOptional(),
  /** Reward of this turn from the agent; part of the attempt's reward. */
  reward: z.number().exactOptional(),
});
export type CallRecord = z.infer<typeof CallRecord>;

/** One call of a hosted model: never trained, so its tokens are counts. */
const HostedCallRecord = z.strictObject({
  /** Name used by the agent: `openai/gpt-5-mini`. */
  model: z.string(),
  key: z.string(),
  occurrence: z.number(),
  label: z.string().nullable(),
  /** Role that called; absent without roles. */
  role: z.string().exactOptional(),
  request: CallRequest,
  choices: z.array(z.strictObject({ message: ChatMessage, finishReason: z.string() })),
  /** Error of the model's server; null if it answered. */
  refusal: z.string().nullable(),
  /** Tokens counted by the server; null if it reports none. */
  promptTokens: z.number().nullable(),
  completionTokens: z.number().nullable(),
  /** Null if unknown. */
  usd: z.number().nullable(),
});
export type HostedCallRecord = z.infer<typeof HostedCallRecord>;

/** A conversation as a script put it down: messages, and choices as the indices of their calls. */
const HistoryRecord = z.strictObject({
  messages: z.array(z.union([z.strictObject({ call: z.number() }), ChatMessage])),
  tools: z.array(z.unknown()).nullable(),
});
export type HistoryRecord = z.infer<typeof HistoryRecord>;

/** Members of one role's trajectory in an attempt of several roles. */
const RoleTrajectoryRecord = z.strictObject({
  histories: z.number(),
  logs: z.number(),
  metadata,
  explanation: z.string().nullable(),
});
export type RoleTrajectoryRecord = z.infer<typeof RoleTrajectoryRecord>;

/** Members of a script's trajectory beyond its calls, lossless. */
const TrajectoryRecord = z.strictObject({
  history: HistoryRecord,
  additionalHistories: z.array(HistoryRecord),
  metadata,
  /** The judge's explanation. */
  explanation: z.string().nullable(),
  /** Answered calls whose choices are in no history: never trained. */
  otherCalls: z.array(CallRecord),
  /** The trajectory's own reward, where turns have rewards beside it. */
  outcome: z.number().exactOptional(),
  /** With roles, whose trajectories these are: each role that played has the next so many histories and lines of the log. */
  roles: z.record(z.string(), RoleTrajectoryRecord).exactOptional(),
});

export const AttemptRecord = z.strictObject({
  attempt: count,
  /** In an evaluation alone. */
  scenario: z.number().exactOptional(),
  scenarioId: z.string().exactOptional(),
  status: z.enum(['ok', 'failed']),
  failure: z.strictObject({ type: z.enum(Object.keys(FAILURES) as FailureType[]), message: z.string() }).nullable(),
  /** With roles, the mean of the trained ones' rewards. */
  reward: z.number().nullable(),
  /** Rewards of the roles that played; absent without roles, and if the attempt failed. */
  roleRewards: byName.exactOptional(),
  metrics: z.record(z.string(), z.union([z.number(), z.boolean()])),
  logs: z.array(z.string()),
  /** A call was cut at `max_tokens`, or refused because its prompt had outgrown the model. */
  truncated: z.boolean(),
  /** Journaled answers that a repetition did not ask for again: the agent is not deterministic. */
  unclaimedAnswers: z.number(),
  calls: z.array(CallRecord),
  /** Calls of hosted models, in an order that does not depend on timing. */
  hostedCalls: z.array(HostedCallRecord).exactOptional(),
  /** In a script's own loop alone. */
  trajectory: TrajectoryRecord.exactOptional(),
});
export type AttemptRecord = z.infer<typeof AttemptRecord>;

/** Origin of a replay: its calls before `fromCall` are those of the attempt. */
const ReplayOrigin = z.strictObject({
  /** `0.3.2.5`, or `eval.0.3.5`. */
  attempt: z.string(),
  rolloutsSha256: z.string(),
  /** 0-based, in the order in which the agent asked. */
  fromCall: count,
  /** The model that answered from there on: `demo@12`, or a hosted one. */
  model: z.string(),
});
export type ReplayOrigin = z.infer<typeof ReplayOrigin>;

export const RolloutHeader = z.strictObject({
  schema,
  inputsSha256: z.string(),
  branch: z.number(),
  step: z.number(),
  /** Group, scenario and its id are here for a group, and with each attempt in an evaluation. */
  group: z.number().exactOptional(),
  scenarioId: z.string().exactOptional(),
  scenario: z.number().exactOptional(),
  adapterSha256: z.string().nullable(),
  attempts: z.number(),
  /** In a script's own loop: what the group is known by, and whether the script took it out after it was played. */
  metadata: metadata.exactOptional(),
  isDropped: z.boolean().exactOptional(),
  /** In a replay alone. */
  replay: ReplayOrigin.exactOptional(),
});
export type RolloutHeader = z.infer<typeof RolloutHeader>;

/** Verdict on a group. */
export const Judged = z.strictObject({
  schema,
  inputsSha256: z.string(),
  rolloutsSha256: z.string(),
  judge: z.string(),
  /** Null if discarded. */
  rewards: byAttempt(z.number()),
  /** Rewards by attempt and role that played; null if discarded. Absent without roles. */
  roleRewards: byAttempt(byName).exactOptional(),
  /** Parts of the reward by attempt and call; null if no turn has one. Absent if no attempt has any. */
  turnRewards: byAttempt(numbers).exactOptional(),
  /** Rewards that the agent's `rewardGroup` gave by name; null if discarded. Absent if it gave none by name. */
  namedRewards: byAttempt(byName).exactOptional(),
  /** Metrics that were given with rewards from outside; null if none were. Absent if no attempt has any. */
  givenMetrics: byAttempt(byName).exactOptional(),
  /** Length penalty of each attempt's advantage. Absent without an overlong buffer. */
  overlongCosts: numbers.exactOptional(),
  explanations: byAttempt(z.string()),
  /** The judge's scores from 0 to 1, before the agent's reward was weighed in; absent if the agent judged. */
  scores: byAttempt(z.number()).exactOptional(),
  /** The verdict's name in the cache; null if there was nothing to judge. */
  verdict: z.string().nullable().exactOptional(),
  metrics: byName,
});
export type Judged = z.infer<typeof Judged>;

/** `verdict.json` of a step. */
export const StepVerdict = z.strictObject({
  schema,
  inputsSha256: z.string(),
  groups: z.array(
    GroupRef.extend({
      /** `trained`, or why it is not. */
      use: GroupResult.shape.use,
      rewards: byAttempt(z.number()),
    }),
  ),
});
export type StepVerdict = z.infer<typeof StepVerdict>;

/** A judge's scores by the hash of an attempt's conversation: `judgments/<key>.json`. */
export const Verdict = z.strictObject({
  schema,
  judge: z.string(),
  scores: z.record(z.string(), z.strictObject({ score: z.number().min(0).max(1), explanation: z.string() })),
});
export type Verdict = z.infer<typeof Verdict>;

/** All of a question to a judge but the attempts: the rubric is in the agent's code, which changes. */
export const JudgeQuestionFile = z.strictObject({
  schema,
  /** For people. */
  judge: z.string(),
  /** Part of the question's hash, as are the rubric, `maxCharsPerAttempt` and `request`. */
  model: z.string(),
  rubric: z.string(),
  maxCharsPerAttempt: z.number(),
  request: z.record(z.string(), z.unknown()),
  /** Characters of each attempt that the judge could read. */
  maxChars: z.number(),
});
export type JudgeQuestionFile = z.infer<typeof JudgeQuestionFile>;

/** A judge's answer to the question with this hash, which changes with the agent's rubric. Independent of time. */
export const JudgeAnswerFile = z.strictObject({
  schema,
  question: z.string(),
  /** Complaint about the judge's earlier answer, where it was asked again. */
  complaint: z.string().exactOptional(),
  text: z.string(),
  finishReason: z.string(),
  promptTokens: z.number(),
  completionTokens: z.number(),
  /** Null if it is not known. */
  usd: z.number().nullable(),
});
export type JudgeAnswerFile = z.infer<typeof JudgeAnswerFile>;

/** Why an answer cannot be trained: its text was redacted, or it was sampled otherwise than in training. */
export const UNTRAINABLE = ['redacted', 'parameters'] as const;

/** One served answer. */
export const Recording = z.strictObject({
  schema,
  /** Without what an API writes before it. */
  id: z.string(),
  conversation: z.string(),
  at: z.iso.datetime(),
  /** API of the request: `chat/completions`, `responses` or `messages`. */
  api: z.string(),
  /** Checkpoint that answered, as engines name it. */
  policy: z.string(),
  /** Null: it can be trained. A redacted one has no token ids. */
  untrainable: z.enum(UNTRAINABLE).nullable(),
  call: CallRecord,
});
export type Recording = z.infer<typeof Recording>;
