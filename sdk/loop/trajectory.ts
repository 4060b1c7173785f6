/** The result of a rollout: one or several conversations, and their reward. */
import type OpenAI from 'openai';

import type { Metrics } from '../../core/numbers/statistics.ts';
import { given, optional, takes } from '../options/options.ts';
import { CHOICE_TAG } from '../../play/recorder/answer.ts';

export type Message = OpenAI.Chat.Completions.ChatCompletionMessageParam;
export type Messages = Message[];
export type Choice = OpenAI.Chat.Completions.ChatCompletion.Choice;
/** A choice is what the model sampled, and what is trained; a message is context. */
export type MessagesAndChoices = (Message | Choice)[];
export type Tools = OpenAI.Chat.Completions.ChatCompletionTool[];
export type Metadata = Record<string, string | number | boolean | null>;

/** A conversation beside the first: of a sub-agent, or from before the context was compacted. */
export interface History {
  messagesAndChoices: MessagesAndChoices;
  tools: Tools | null;
}

/** A reward for this choice, in addition to the trajectory's reward. */
export interface TurnReward {
  choice: Choice;
  reward: number;
}

/** The place where a trajectory was gathered. A copy keeps it, so that training finds the recorded calls. */
export interface Origin {
  readonly run: string;
  readonly split: 'train' | 'val';
  readonly step: number;
  readonly group: number;
  readonly attempt: number;
  /** Absent without roles. */
  readonly role?: string;
}

export interface TrajectoryInit {
  messagesAndChoices: MessagesAndChoices;
  tools?: Tools | null;
  reward: number;
  turnRewards?: TurnReward[];
  metrics?: Metrics;
  metadata?: Metadata;
  logs?: string[];
  additionalHistories?: History[];
  explanation?: string | null;
  origin?: Origin | null;
}

const checkInit = takes<TrajectoryInit>('Trajectory', {
  ...given('messagesAndChoices', 'reward'),
  ...optional('tools', 'turnRewards', 'metrics', 'metadata', 'logs', 'additionalHistories', 'explanation', 'origin'),
});

export class Trajectory {
  messagesAndChoices: MessagesAndChoices;
  tools: Tools | null;
  reward: number;
  turnRewards: TurnReward[];
  metrics: Metrics;
  metadata: Metadata;
  logs: string[];
  additionalHistories: History[];
  /** A judge's explanation, which the report shows beside the reward. */
  explanation: string | null;
  /** Set by gathering. */
  origin: Origin | null;

  constructor(init: TrajectoryInit) {
    checkInit(init);
    this.messagesAndChoices = init.messagesAndChoices;
    this.tools = init.tools ?? null;
    this.reward = init.reward;
    this.turnRewards = init.turnRewards ?? [];
    this.metrics = init.metrics ?? {};
    this.metadata = init.metadata ?? {};
    this.logs = init.logs ?? [];
    this.additionalHistories = init.additionalHistories ?? [];
    this.explanation = init.explanation ?? null;
    this.origin = init.origin ?? null;
  }

  /** The role that it is of, once it is gathered; null without roles. */
  get role(): string | null {
    return this.origin?.role ?? null;
  }

  /** The total reward: the trajectory's, plus those of its turns. */
  get totalReward(): number {
    return this.turnRewards.reduce((sum, { reward }) => sum + reward, this.reward);
  }

  /** The conversation as any model takes it. */
  messages(): Messages {
    return asMessages(this.messagesAndChoices);
  }

  /** Another trajectory of the same attempt: `trajectory.copy({ reward: 1 })`. */
  copy(changes: Partial<TrajectoryInit>): Trajectory {
    const { metrics, metadata, logs, additionalHistories, messagesAndChoices } = this;
    const { tools, reward, explanation, origin } = this;
    const own = {
      turnRewards: [...this.turnRewards],
      metrics: { ...metrics },
      metadata: { ...metadata },
      logs: [...logs],
      additionalHistories: [...additionalHistories],
      messagesAndChoices: [...messagesAndChoices],
    };
    return new Trajectory({ tools, reward, explanation, origin, ...own, ...changes });
  }

  log(line: string): void {
    this.logs.push(line);
  }

  toString(): string {
    return `Trajectory(reward ${this.reward}, ${JSON.stringify(this.metrics)})`;
  }
}

function asMessages(messagesAndChoices: MessagesAndChoices): Messages {
  return messagesAndChoices.map((item) => (isChoice(item) ? messageOf(item) : item));
}

export function isChoice(item: Message | Choice): item is Choice {
  return 'message' in item;
}

/** Which call of its attempt a choice answers, as `<key>/<occurrence>/<index>`; null where nobody recorded it. */
export function callOfChoice(choice: Choice): string | null {
  const tag = (choice as Choice & { [CHOICE_TAG]?: unknown })[CHOICE_TAG];
  return typeof tag === 'string' ? tag : null;
}

function messageOf({ message }: Choice): Message {
  const { content, tool_calls: calls } = message;
  return { role: 'assistant', content, ...(calls && calls.length > 0 ? { tool_calls: calls } : {}) };
}
