/** The worth of an attempt: the right answer is most of it, in the shape of ART·E's reward. */
import type { Question } from './mail.ts';

export interface Edition {
  readonly maxTurns: number;
  readonly maxTokensPerTurn: number;
  /** Reward of a wrong answer. Below 0 it is better to say that one does not know. */
  readonly wrong: number;
}

export interface Answer {
  readonly text: string;
  readonly sources: readonly number[];
}

/** Ids of mails. */
export interface Trail {
  readonly found: Set<number>;
  readonly read: Set<number>;
}

interface Attempt {
  /** Null for none, and for "I don't know". */
  readonly answer: Answer | null;
  readonly trail: Trail;
  readonly turns: number;
}

const SOURCES = 0.3;
const SPEED = 0.1;
/** Something to learn from before the first right answer. */
const FOUND = 0.1;
const READ = 0.1;

export function grade({ answer, trail, turns }: Attempt, question: Question, { maxTurns, wrong }: Edition) {
  const correct = answer !== null && normalise(answer.text) === normalise(question.answer);
  const cited = overlap(answer?.sources ?? [], question.sources);
  const found = question.sources.every((id) => trail.found.has(id));
  const read = question.sources.every((id) => trail.read.has(id));
  const right = 1 + SOURCES * cited + SPEED * (1 - turns / maxTurns);
  const partial = (answer === null ? 0 : wrong) + (found ? FOUND : 0) + (read ? READ : 0);
  const metrics = { correct, sourced: correct && cited === 1, answered: answer !== null, found, read, turns };
  return { reward: correct ? right : partial, metrics };
}

/** The shared sources, as a share of all: a needless source costs as a missing one does. */
function overlap(cited: readonly number[], sources: readonly number[]): number {
  const all = new Set([...cited, ...sources]);
  return sources.filter((id) => cited.includes(id)).length / all.size;
}

/** `41,500 euros.` is `41500`: how a fact is written is not asked for. */
function normalise(text: string): string {
  const plain = text.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
  return plain.replaceAll(/(?<=\d),(?=\d{3}(?!\d))/g, '').replace(/^(?:€|eur) ?(?=\d)|(?<=\d) ?(?:€|eur|euros)$/g, '');
}
