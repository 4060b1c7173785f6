/** RULER for those who own their loop: conversations or groups of trajectories are scored where they stand. */
import { DEFAULT_ROLLOUT } from '../../core/rules/run-defaults.ts';
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import {
  forgetfulAnswers,
  forgetfulVerdicts,
  storedVerdicts,
  type Score,
} from '../../store/records/judging/verdicts.ts';
import { optional, takes } from '../options/options.ts';
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import { OutageClock } from '../../play/connections/clock.ts';
import type { Conversation } from '../../store/records/judging/conversation.ts';
import { openJudge } from '../../play/judge/ask-judge.ts';
import { judgeConversations, type Judgement } from '../../play/judge/judge-conversations.ts';
import { createRuler, type RulerOptions } from './create-ruler.ts';
import { isRuler, type Ruler } from '../../play/judge/ruler.ts';

export interface ScoreContext {
  /** Store of verdicts, or its address, so that none is paid for twice. Without one, verdicts are not kept. */
  readonly store?: Store | string;
  /** For a judge on one's own engine: a base model's, or that of the checkpoint which has this adapter. */
  readonly engine?: { readonly connection: EngineConnection; readonly adapterSha256?: string | null };
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
  /** Deadline of one call, and how long one is tried again while the provider refuses. */
  readonly callTimeoutMs?: number;
  readonly callRetryBudgetMs?: number;
}

const checkContext = takes<ScoreContext>('ruler.context', {
  ...optional('store', 'engine', 'env', 'signal', 'callTimeoutMs', 'callRetryBudgetMs'),
});

export type RulerScore = { readonly id: string } & Score;

/** The reward of an agent, for `defineAgent`; or, with conversations, their scores in their order. */
export function ruler(options: RulerOptions): Ruler;
export function ruler(
  conversations: readonly Conversation[],
  options: RulerOptions | Ruler,
  context?: ScoreContext,
): Promise<readonly RulerScore[]>;
export function ruler(
  first: RulerOptions | readonly Conversation[],
  options?: RulerOptions | Ruler,
  context: ScoreContext = {},
): Ruler | Promise<readonly RulerScore[]> {
  if (!isList(first)) return createRuler(first);
  return scoreConversations(first, asRuler(options), context).then(({ scores }) => scores);
}

/** `Array.isArray` does not narrow a readonly list away. */
function isList(value: unknown): value is readonly Conversation[] {
  return Array.isArray(value);
}

/** Scores conversations like `ruler`, and returns the cost. */
export async function scoreConversations(
  conversations: readonly Conversation[],
  judged: Ruler,
  context: ScoreContext = {},
): Promise<Judgement> {
  checkContext(context);
  const { callTimeoutMs = DEFAULT_ROLLOUT.callTimeoutMs } = context;
  const { callRetryBudgetMs = DEFAULT_ROLLOUT.callRetryBudgetMs } = context;
  const { signal = new AbortController().signal, store, engine, env = process.env } = context;
  const judging = engine ? { connection: engine.connection, adapterSha256: engine.adapterSha256 ?? null } : null;
  const kept = typeof store === 'string' ? await openStore(store) : store;
  try {
    return await judgeConversations(conversations, {
      ...openJudge(judged, judging, env),
      verdicts: kept === undefined ? forgetfulVerdicts() : storedVerdicts(kept),
      answers: forgetfulAnswers(),
      patience: { callTimeoutMs, callRetryBudgetMs, signal, checkFresh: () => undefined, outage: new OutageClock() },
    });
  } finally {
    if (typeof store === 'string') await kept?.close();
  }
}

function asRuler(options: RulerOptions | Ruler | undefined): Ruler {
  return isRuler(options) ? options : createRuler(options as RulerOptions);
}

/** The part of a trajectory that is read and changed. */
export interface ScorableTrajectory {
  readonly messagesAndChoices: readonly unknown[];
  readonly tools: readonly unknown[] | null;
  readonly additionalHistories: readonly { readonly messagesAndChoices: readonly unknown[] }[];
  reward: number;
  /** Parts of the attempt's own reward beside `reward`. */
  turnRewards?: { reward: number }[];
  metrics: Record<string, number | boolean>;
  explanation: string | null;
}

/**
 * Scores the trajectories of a group against each other, in place: the reward becomes the judge's score (by the
 * ruler's weights), the reward before it the metric `agentReward`, the score `rulerScore`. All or none are changed.
 */
export async function rulerScoreGroup<G extends { readonly trajectories: readonly ScorableTrajectory[] }>(
  group: G,
  options: RulerOptions | Ruler,
  context: ScoreContext = {},
): Promise<G> {
  const judged = asRuler(options);
  const { trajectories } = group;
  if (trajectories.length === 0) return group;
  const { scores } = await scoreConversations(trajectories.map(toConversation), judged, context);
  for (const [index, trajectory] of trajectories.entries()) {
    const { score, explanation } = scores[index]!;
    const { reward, turnRewards = [] } = trajectory;
    const agentReward = turnRewards.reduce((sum, turn) => sum + turn.reward, reward);
    trajectory.metrics = { ...trajectory.metrics, agentReward, rulerScore: score };
    if (turnRewards.length > 0)
      trajectory.turnRewards = turnRewards.map((turn) => ({ ...turn, reward: judged.weights.agent * turn.reward }));
    trajectory.reward = judged.weights.ruler * score + judged.weights.agent * reward;
    trajectory.explanation = explanation;
  }
  return group;
}

function toConversation(trajectory: ScorableTrajectory, index: number): Conversation {
  return {
    id: String(index),
    messages: messagesOf(trajectory.messagesAndChoices),
    tools: trajectory.tools ?? [],
    additionalHistories: trajectory.additionalHistories.map((history) => messagesOf(history.messagesAndChoices)),
  };
}

/** A choice is what the model sampled; its message is what was said. */
function messagesOf(items: readonly unknown[]): ChatMessage[] {
  return items.map((item) => {
    const { message } = item as { message?: ChatMessage };
    return message ?? (item as ChatMessage);
  });
}
