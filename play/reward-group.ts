/** Rewards that an agent's own function gives to a whole group at once. Knows nothing of Temporal or of runs. */
import { showValue, TemperError } from '../core/contract/failures.ts';
import { isReward, REWARD_RULE } from '../core/rules/given-values.ts';
import { findRewardsProblem, splitMetrics, weighRewards, type NamedRewards } from '../core/rules/named-rewards.ts';
import type { AttemptRecord } from '../store/records/groups/trajectories.ts';
import type { Agent, FinishedAttempt, Scenario } from './agent.ts';
import { conversationOf } from '../store/records/judging/conversation.ts';
import { pauseAfterMs } from './judge/judge-conversations.ts';

export interface GroupReward {
  /** Reward of the whole attempt: what its rollout returned, and what the function added or put in its place. */
  readonly reward: number;
  /** Rewards that the function gave by name; null for an agent without names. */
  readonly named: NamedRewards | null;
}

interface GroupToReward {
  readonly scenario: Scenario;
  /** Those that did not fail. */
  readonly attempts: readonly AttemptRecord[];
  readonly signal: AbortSignal;
  /** How often this was tried, this time included. */
  readonly tries: number;
}

/** Throws JudgeFailed, as a judge would, where the function throws or returns what cannot be used. */
export async function rewardGroup(agent: Agent, group: GroupToReward): Promise<GroupReward[]> {
  const { scenario, attempts, signal, tries } = group;
  const finished = attempts.map((record) => finishedAttempt(agent, record));
  try {
    const giving = agent.rewardGroup!({ scenario: structuredClone(scenario), attempts: finished, signal });
    const given: unknown = await Promise.race([giving, rejectOnAbort(signal)]);
    return readRewards(agent, attempts, given);
  } catch (cause) {
    signal.throwIfAborted();
    const rule = `rewardGroup of the agent ${agent.name} failed at the scenario ${scenario.id} with ${String(cause)}`;
    const remedy = 'correct it and start the worker again; Temper retries later';
    throw new TemperError('JudgeFailed', `${rule}; ${remedy}`, { cause, retryAfterMs: pauseAfterMs(tries) });
  }
}

/** A function that does not look at its signal is not waited for. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('the function was ended')), { once: true });
  });
}

function finishedAttempt(agent: Agent, record: AttemptRecord): FinishedAttempt {
  const { attempt, reward, metrics, logs, truncated } = record;
  const own = agent.rewards === undefined ? { rewards: {}, metrics: { ...metrics } } : splitMetrics(metrics);
  return { ...conversationOf(record), attempt, reward, ...own, logs: [...logs], truncated };
}

function readRewards(agent: Agent, attempts: readonly AttemptRecord[], given: unknown): GroupReward[] {
  if (!Array.isArray(given) || given.length !== attempts.length)
    throw new Error(`it must return a list of ${attempts.length} rewards, one for each attempt, got ${counted(given)}`);
  return attempts.map((record, index) => readReward(agent, record, given[index]));
}

function readReward({ rewards: weights }: Agent, record: AttemptRecord, given: unknown): GroupReward {
  const of = `the reward of attempt ${record.attempt}`;
  if (weights === undefined) {
    if (isReward(given)) return { reward: given, named: null };
    throw new Error(`${of} must be ${REWARD_RULE}, got ${showValue(given)}`);
  }
  const own = splitMetrics(record.metrics).rewards;
  const missing = Object.keys(weights).filter((name) => !Object.hasOwn(own, name));
  const problem = findRewardsProblem(given, weights, missing);
  if (problem !== null) throw new Error(`${of} ${problem}`);
  const named = given as NamedRewards;
  const twice = Object.keys(named).find((name) => Object.hasOwn(own, name));
  if (twice !== undefined) throw new Error(`${of} must not have ${twice}, which its rollout returned`);
  const reward = (record.reward ?? 0) + weighRewards(weights, named);
  if (!isReward(reward)) throw new Error(`${of} must have as its weighted sum ${REWARD_RULE}, got ${reward}`);
  return { reward, named };
}

function counted(given: unknown): string {
  return Array.isArray(given) ? String(given.length) : showValue(given);
}
