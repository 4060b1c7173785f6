/** The reward of an attempt: the right answer is most of it, in the shape of ART·E's reward. */
import type { Question } from './mailbox.ts';

export interface Answer {
  readonly text: string;
  /** Id of the mail that the answer cites; null for none. */
  readonly source: number | null;
}

/** Ids of the mails that an attempt has found and read. */
export interface Seen {
  readonly found: Set<number>;
  readonly read: Set<number>;
}

export const MAX_TURNS = 5;
export const MAX_TOKENS_PER_TURN = 64;

const SOURCE = 0.3;
const SPEED = 0.1;
/** Something to learn from before the first right answer. */
const FOUND = 0.1;
const READ = 0.1;

/** `said` is the last message; null for no answer within the turns. */
export function grade(said: string | null, { found, read }: Seen, turns: number, question: Question) {
  const answer = parseAnswer(said);
  const metrics = {
    correct: answer?.text === question.answer,
    sourced: answer?.text === question.answer && answer.source === question.source,
    answered: answer !== null,
    found: found.has(question.source),
    read: read.has(question.source),
    turns,
  };
  const right = 1 + (metrics.sourced ? SOURCE : 0) + SPEED * (1 - turns / MAX_TURNS);
  const partial = (metrics.found ? FOUND : 0) + (metrics.read ? READ : 0);
  return { reward: metrics.correct ? right : partial, metrics };
}

/** A word, and the id of the mail that tells it: `KEL 4`. */
export function parseAnswer(text: string | null): Answer | null {
  const [, word, id] = /^([A-Z]+)(?: (\d+))?$/.exec(text ?? '') ?? [];
  if (word === undefined) return null;
  return { text: word, source: id === undefined ? null : Number(id) };
}
