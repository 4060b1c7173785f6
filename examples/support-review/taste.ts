/** Which reply is liked best, for metrics alone. The agent is never told: it only gets scores, or learns which of two replies is better. */
import type { Mood, Reply, Scenario, Topic } from './tickets.ts';

/** The reply that the reviewer likes best, and one that is still fair. */
const TASTE: Readonly<Record<Topic, Readonly<Record<Mood, readonly [best: Reply, fair: Reply]>>>> = {
  late: { calm: ['explain', 'apologise'], rage: ['apologise', 'call'] },
  hurt: { calm: ['replace', 'refund'], rage: ['replace', 'call'] },
  bill: { calm: ['refund', 'explain'], rage: ['call', 'refund'] },
};

const FAIR = 0.4;

/** From 0 to 1. */
export function scoreReply({ topic, mood }: Pick<Scenario, 'topic' | 'mood'>, reply: Reply | null): number {
  const [best, fair] = TASTE[topic][mood];
  if (reply === best) return 1;
  return reply === fair ? FAIR : 0;
}
