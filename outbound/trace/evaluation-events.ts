/** Rewards of an attempt as evaluation results: the reward itself, and what it was made of. */
import { REVIEW } from '../../core/rules/external-rewards.ts';
import { largest, mean, smallest } from '../../core/numbers/statistics.ts';
import { EVALUATION_EVENT, GEN_AI } from './conventions.ts';
import { cutText } from './message-parts.ts';
import type { SpanEvent } from './otlp/span.ts';
import { rewardsOf, type TracedGroup } from './traced.ts';

export interface AttemptVerdict {
  /** Null: the attempt failed, or nobody judged it. */
  readonly reward: number | null;
  /** Place among the rewards of its group. */
  readonly label: 'best' | 'worst' | 'above mean' | 'below mean' | 'equal' | null;
  /** Name of the judge; `agent` for the agent's own reward. */
  readonly judge: string;
  readonly explanation: string | null;
  /** The judge's score, the agent's own reward, rewards by name and by role. */
  readonly parts: Readonly<Record<string, number>>;
}

/** One for each attempt, in the order of the group. */
export function verdictsOf(group: TracedGroup): AttemptVerdict[] {
  const rewards = rewardsOf(group);
  const known = rewards.filter((reward) => reward !== null);
  const range = { best: largest(known), worst: smallest(known), mean: mean(known) ?? 0 };
  return rewards.map((reward, index) => ({
    reward,
    label: reward === null ? null : labelOf(reward, range),
    judge: group.judged?.judge ?? 'agent',
    explanation: group.judged?.explanations[index] ?? null,
    parts: partsOf(group, index),
  }));
}

type Range = Readonly<Record<'best' | 'worst' | 'mean', number>>;

function labelOf(reward: number, { best, worst, mean: middle }: Range): AttemptVerdict['label'] {
  if (best === worst) return 'equal';
  if (reward === best) return 'best';
  if (reward === worst) return 'worst';
  return reward >= middle ? 'above mean' : 'below mean';
}

function partsOf(group: TracedGroup, index: number): Record<string, number> {
  const { attempts, judged } = group;
  const { roleRewards } = attempts[index]!;
  return {
    ...judgesParts(group, index),
    ...prefixed('reward.', judged?.namedRewards?.[index]),
    ...prefixed('role.', judged?.roleRewards?.[index] ?? roleRewards),
  };
}

/** The judge's score, and the agent's own reward beside it; nothing if the agent judged. */
function judgesParts({ attempts, judged }: TracedGroup, index: number): Record<string, number> {
  if (judged === null || judged.judge === 'agent') return {};
  const { reward } = attempts[index]!;
  const score = judged.scores?.[index] ?? null;
  return {
    ...(score !== null && { [judged.judge === REVIEW ? 'review_score' : 'ruler_score']: score }),
    ...(reward !== null && { agent_reward: reward }),
  };
}

function prefixed(
  prefix: string,
  rewards: Readonly<Record<string, number>> | null | undefined,
): Record<string, number> {
  return Object.fromEntries(Object.entries(rewards ?? {}).map(([name, reward]) => [`${prefix}${name}`, reward]));
}

export function evaluationEvents(verdict: AttemptVerdict, at: bigint, maxTextLength: number): SpanEvent[] {
  const { reward, label, judge, explanation, parts } = verdict;
  if (reward === null) return [];
  const own: SpanEvent = {
    name: EVALUATION_EVENT,
    at,
    attributes: {
      [GEN_AI.evaluation]: 'reward',
      [GEN_AI.score]: { double: reward },
      ...(label !== null && { [GEN_AI.scoreLabel]: label }),
      ...(explanation !== null && { [GEN_AI.explanation]: cutText(explanation, maxTextLength) }),
      'temper.judge': judge,
    },
  };
  const others = Object.entries(parts).map(([name, score]) => ({
    name: EVALUATION_EVENT,
    at,
    attributes: { [GEN_AI.evaluation]: name, [GEN_AI.score]: { double: score } },
  }));
  return [own, ...others];
}
