/** Recorded conversations as people look at them: counted, or one of them in full. */
import { UNTRAINABLE, type Recording } from '../../../core/contract/records.ts';
import { mean } from '../../../core/numbers/statistics.ts';
import type { Store } from '../../store.ts';
import { readRatedConversations, type RatedConversation } from './feedback.ts';
import { RecordedAnswers } from './recorded-answers.ts';
import { readRecordings, type OnDamage, type Untrainable } from './recordings.ts';

/** Answers of one checkpoint. */
interface PolicyTally {
  policy: string;
  answers: number;
  conversations: number;
  /** Answers with feedback, their own or that of their conversation. */
  rated: number;
  /** Mean of it; null without any. */
  reward: number | null;
  untrainable: Record<Untrainable, number>;
}

export interface ProductionSummary {
  /** Bytes of recordings that cannot be read, by chunk. */
  damaged: Record<string, number>;
  answers: number;
  conversations: number;
  /** In the order of their first answers. */
  policies: PolicyTally[];
  /** In the order in which they began. */
  rated: RatedConversation[];
}

export async function readProduction(store: Store, run: string): Promise<ProductionSummary> {
  const rated = await readRatedConversations(store, run);
  const rewards = new Map(rated.flatMap(rewardsOfAnswers));
  const conversations = new Set<string>();
  const policies = new Map<string, Tallied>();
  const damaged: ProductionSummary['damaged'] = {};
  const onDamage: OnDamage = (chunk, bytes) => void (damaged[chunk] = (damaged[chunk] ?? 0) + bytes);
  let answers = 0;
  for await (const { id, conversation, policy, untrainable } of readRecordings(store, run, onDamage)) {
    const tallied = policies.get(policy) ?? { answers: 0, conversations: new Set(), rewards: [], untrainable: [] };
    policies.set(policy, tallied);
    answers += 1;
    tallied.answers += 1;
    for (const names of [conversations, tallied.conversations]) names.add(conversation);
    if (rewards.has(id)) tallied.rewards.push(rewards.get(id)!);
    if (untrainable !== null) tallied.untrainable.push(untrainable);
  }
  const tallies = [...policies].map(([policy, tallied]) => tallyOf(policy, tallied));
  return { damaged, answers, conversations: conversations.size, policies: tallies, rated };
}

interface Tallied {
  answers: number;
  conversations: Set<string>;
  rewards: number[];
  untrainable: Untrainable[];
}

function tallyOf(policy: string, { answers, conversations, rewards, untrainable }: Tallied): PolicyTally {
  const counts = UNTRAINABLE.map((reason) => [reason, untrainable.filter((each) => each === reason).length]);
  return {
    policy,
    answers,
    conversations: conversations.size,
    rated: rewards.length,
    reward: mean(rewards),
    untrainable: Object.fromEntries(counts) as Record<Untrainable, number>,
  };
}

function rewardsOfAnswers({ turns, feedback: ofAll }: RatedConversation): [string, number][] {
  return turns.flatMap(({ recording, feedback }): [string, number][] => {
    const reward = (feedback ?? ofAll)?.reward;
    return reward === undefined ? [] : [[recording.id, reward]];
  });
}

/** Found by an answer's id of any API, a conversation's, or a client's own name for one. Null if none was recorded. */
export async function readConversation(
  store: Store,
  run: string,
  id: string,
): Promise<{ conversation: string; recordings: Recording[]; rated: RatedConversation | null } | null> {
  const place = await new RecordedAnswers(store, run).find(id);
  if (place === null) return null;
  const { conversation } = place;
  const recordings: Recording[] = [];
  for await (const recording of readRecordings(store, run))
    if (recording.conversation === conversation) recordings.push(recording);
  const rated = (await readRatedConversations(store, run)).find((each) => each.conversation === conversation) ?? null;
  return { conversation, recordings, rated };
}
