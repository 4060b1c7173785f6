/** Tickets of customers, in so few bytes that the pocket model can read them, and the replies that an agent may choose. */
import type { Scenario as AnyScenario } from 'temper-rl';

export const TOPICS = ['late', 'hurt', 'bill'] as const;
export const MOODS = ['calm', 'rage'] as const;
/** The keys of the replies are 1, 2, 3, … */
export const REPLIES = ['explain', 'replace', 'refund', 'apologise', 'call'] as const;

export type Topic = (typeof TOPICS)[number];
export type Mood = (typeof MOODS)[number];
export type Reply = (typeof REPLIES)[number];

export interface Scenario extends AnyScenario {
  readonly topic: Topic;
  readonly mood: Mood;
}

/** `count` tickets: each topic and mood in turn. */
export function tickets(part: 'train' | 'exam', count: number): Scenario[] {
  const kinds = TOPICS.flatMap((topic) => MOODS.map((mood) => ({ topic, mood })));
  return Array.from({ length: count }, (_, index) => {
    const kind = kinds[index % kinds.length]!;
    return { id: `${part}-${index}-${kind.topic}-${kind.mood}`, ...kind };
  });
}

/** The message that the model gets, such as `late rage 12345`. */
export function renderTicket({ topic, mood }: Scenario): string {
  return `${topic} ${mood} ${REPLIES.map((_, index) => index + 1).join('')}`;
}

/** Null for an answer that is no key. */
export function readReply(answer: string): Reply | null {
  return /^[1-9]$/.test(answer) ? (REPLIES[Number(answer) - 1] ?? null) : null;
}
