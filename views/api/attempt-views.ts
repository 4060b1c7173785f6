/** Groups and attempts in answers of the API. */
import type { EvalResult, GroupResult, StepSummary } from '../../core/contract/contract.ts';

/** One attempt as a row of a table. */
export interface AttemptRow {
  /** `0.3.2.5`; of an evaluation `eval.BRANCH.STEP.ATTEMPT`. */
  readonly id: string;
  readonly branch: number;
  readonly step: number;
  /** Null in an evaluation. */
  readonly group: number | null;
  readonly attempt: number;
  readonly scenario: string;
  /** First line of its last sampled message, without thoughts, at most 200 characters; of calls alone the tools. Null: it called no model. */
  readonly answer: string | null;
  readonly reward: number | null;
  /** Reward minus the group's mean. */
  readonly advantage: number | null;
  readonly failure: string | null;
  readonly truncated: boolean;
  readonly turns: number;
  readonly sampledTokens: number;
  /** Names of tools that it called, sorted. */
  readonly tools: readonly string[];
  readonly metrics: Readonly<Record<string, number>>;
  readonly seconds: number | null;
  readonly use: GroupResult['use'] | 'eval' | 'replay';
}

/** `runs/RUN/attempts?…` */
export interface AttemptsView {
  readonly total: number;
  readonly rows: readonly AttemptRow[];
  /** Excerpt around the text that was looked for, by attempt id. */
  readonly excerpts: Readonly<Record<string, string>>;
  readonly index: IndexProgress;
  /** Number of older attempts that a static export does not have; absent: it has all, or is none. */
  readonly leftOut?: number;
}

/** How much of a run's attempts the index has. */
export interface IndexProgress {
  readonly indexed: number;
  /** Groups known; more may come. */
  readonly known: number;
  readonly isComplete: boolean;
}

/** A group in a step. */
export interface GroupRow {
  readonly branch: number;
  /** Step that dealt it: a group may wait for rewards over steps. */
  readonly step: number;
  readonly group: number;
  readonly scenario: string;
  readonly use: GroupResult['use'];
  /** Rewards by attempt; null: no data. */
  readonly rewards: readonly (number | null)[];
  readonly mean: number | null;
  readonly deviation: number | null;
  readonly failed: number;
  readonly truncated: number;
  readonly sampledTokens: number;
  readonly judge: string | null;
}

/** `runs/RUN/steps/STEP?branch=B` */
export interface StepView {
  readonly run: string;
  readonly branch: number;
  readonly step: number;
  readonly summary: StepSummary | null;
  readonly committedAt: string | null;
  readonly adapterSha256: string | null;
  readonly parent: string | null;
  /** The policy that sampled it, such as `demo@11`. */
  readonly sampler: string | null;
  readonly platform: string | null;
  readonly groups: readonly GroupRow[];
  readonly evaluation: EvalResult | null;
  readonly warnings: readonly string[];
  /** Groups beyond those in `groups`. */
  readonly leftOut: number;
  readonly neighbours: NeighboursOf<number>;
}

/** Ids before and after in the same run, step or group; null at an end. */
export interface NeighboursOf<Id> {
  readonly previous: Id | null;
  readonly next: Id | null;
}

/** `runs/RUN/groups/BRANCH.STEP.GROUP`; an evaluation is the group `eval.BRANCH.STEP`. */
export interface GroupView {
  readonly run: string;
  readonly id: string;
  /** `group 3`, `evaluation after step 5`. */
  readonly title: string;
  readonly row: GroupRow | null;
  readonly scenario: string;
  /** The scenario itself, as the agent got it; null in an evaluation, and where the store has none. A large one is the beginning of its JSON. */
  readonly scenarioValue: unknown;
  /** In the order of play; of an evaluation by reward, the lowest first, and before all those without one. */
  readonly attempts: readonly AttemptView[];
  readonly judge: JudgeView | null;
  readonly comparisons: number;
  /** Attempts beyond those in `attempts`. Of too many, some are chosen evenly. */
  readonly leftOut: number;
  /** Groups of the same step. */
  readonly neighbours: NeighboursOf<string>;
}

/** Questions to the judge, and its answers. */
export interface JudgeView {
  readonly judge: string;
  readonly questions: readonly {
    /** Exact messages that were sent; null if they cannot be told from what is stored. */
    readonly messages: readonly MessageView[] | null;
    readonly answers: readonly {
      readonly text: string;
      readonly tokens: number;
      readonly usd: number | null;
      /** Complaint about its earlier answer, where it was asked again. */
      readonly complaint: string | null;
    }[];
  }[];
  /** Scores by attempt. */
  readonly scores: readonly (number | null)[];
  readonly explanations: readonly (string | null)[];
}

export interface ToolCallView {
  readonly name: string;
  /** JSON text as the model wrote it. */
  readonly arguments: string;
}

export interface MessageView {
  readonly role: string;
  readonly text: string;
  /** Thoughts before the answer, where its server tells them apart; absent otherwise. */
  readonly thoughts?: string;
  readonly toolCalls: readonly ToolCallView[];
  /** Characters that were cut off at the end. */
  readonly cut: number;
}

export interface TurnView {
  /** Index of its call in the record. */
  readonly call: number;
  readonly role: string | null;
  readonly label: string | null;
  /** True if the conversation starts anew instead of growing: it shares nothing with an earlier one but the system prompt. */
  readonly fresh: boolean;
  /** Index of the turn that it continues or branches from, or whose history it rewrote; null if it extends the one before, or none. */
  readonly forkOf: number | null;
  /** Number of leading messages that earlier turns showed: `messages` does not repeat them. */
  readonly shared: number;
  /** Those that earlier turns did not show. */
  readonly messages: readonly MessageView[];
  readonly answer: MessageView;
  readonly finishReason: string | null;
  /** Reward of the turn alone; null if none was reported. */
  readonly reward: number | null;
  readonly promptTokens: number;
  readonly sampledTokens: number;
  readonly adapterSha256: string | null;
  readonly startedAt: string | null;
  readonly seconds: number | null;
}

export interface HostedCallView {
  readonly model: string;
  readonly role: string | null;
  readonly messages: readonly MessageView[];
  readonly answers: readonly MessageView[];
  readonly refusal: string | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly usd: number | null;
}

export interface GivenRewardView {
  readonly reward: number;
  readonly by: string | null;
  readonly note: string | null;
  readonly at: string;
  /** Metrics that were given with it. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** The same scenario in the evaluation before training. */
export interface BeforeView {
  readonly id: string;
  readonly reward: number | null;
}

/** `runs/RUN/attempts/ID` */
export interface AttemptView {
  readonly row: AttemptRow;
  readonly title: string;
  readonly explanation: string | null;
  /** Rewards by name, roles' rewards, the judge's score and the agent's own reward, where they differ from the reward. */
  readonly scores: Readonly<Record<string, number>>;
  readonly metrics: Readonly<Record<string, number | boolean>>;
  readonly failureMessage: string | null;
  readonly logs: readonly string[];
  readonly unclaimedAnswers: number;
  readonly adapterSha256: string | null;
  /** `demo@11`; null if it is not known. */
  readonly policy: string | null;
  readonly startedAt: string | null;
  readonly seconds: number | null;
  readonly turns: readonly TurnView[];
  readonly hosted: readonly HostedCallView[];
  readonly given: readonly GivenRewardView[];
  /** Of an attempt of a later evaluation; absent otherwise. */
  readonly before?: BeforeView;
  /** Attempts that were played anew from one of its turns on. */
  readonly replays?: readonly ReplayRow[];
  /** The attempt that a replay was made of; absent otherwise. */
  readonly replayOf?: ReplayOfView;
  /** Names what was cut to keep the answer small; null for a single attempt. */
  readonly leftOut: string | null;
  /** Attempts of the same group. */
  readonly neighbours: NeighboursOf<string>;
}

interface ReplayRow {
  /** `replay.0.3.2.5.t1.0a1b2c3d`, to be looked at as an attempt. */
  readonly id: string;
  /** Turn from which on its answers are new, from 0. */
  readonly fromTurn: number;
  readonly model: string;
  readonly reward: number | null;
  readonly failure: string | null;
}

interface ReplayOfView {
  readonly attempt: string;
  readonly fromTurn: number;
  readonly model: string;
}

/** `runs/RUN/attempts/ID/tokens`: the tokens of each turn as they were recorded. */
export interface TokensView {
  /** False: no vocabulary of the base model was found; `text` is empty everywhere. */
  readonly hasText: boolean;
  readonly turns: readonly TurnTokens[];
  /** Turns beyond those in `turns`. */
  readonly leftOut: number;
}

/** Columns; all have the length of `ids`. A missing column is `null`: it was not recorded. */
export interface TurnTokens {
  readonly call: number;
  /** Prompt tokens that the turn before did not have, then the sampled ones. */
  readonly ids: readonly number[];
  readonly text: readonly string[];
  /** Indexes of control tokens, such as the end of a turn. */
  readonly control: readonly number[];
  /** Index of the first sampled token. */
  readonly sampledFrom: number;
  /** Length of the prompt that earlier turns showed. */
  readonly shared: number;
  /** Values by sampled token. */
  readonly logprobs: readonly number[];
  /** Values of the trainer before its first update, by sampled token; null for a token that it did not compute. */
  readonly trainerLogprobs: readonly (number | null)[] | null;
  readonly entropies: readonly (number | null)[] | null;
  readonly advantages: readonly number[] | null;
  /** True: it was trained. */
  readonly mask: readonly boolean[] | null;
}

export interface AwaitedAttempt {
  readonly attempt: string;
  readonly scenario: string;
  readonly step: number;
  readonly group: number;
  readonly playedAt: string | null;
  /** Time at which its group is decided without it; null: never. */
  readonly deadline: string | null;
  readonly lastMessage: string;
  /** Page on which a person gives the reward; absent if none was asked for. */
  readonly link?: string;
}

/** `runs/RUN/rewards` */
export interface AwaitedList {
  readonly run: string;
  readonly awaited: readonly AwaitedAttempt[];
  /** Groups that only have to be decided. */
  readonly completeGroups: number;
  /** People compare them two at a time, so none takes a reward by itself. */
  readonly byPairs?: true;
  /** Page of all comparisons of such a run; absent if no links were asked for. */
  readonly link?: string;
}
