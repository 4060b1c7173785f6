/** The small edition for agents that bring their own tool loop: its scenarios, what its tools say, and what an answer is worth. */
import { grade, type Answer, type Edition, type Trail } from './grade.ts';
import type { Mail, Question } from './mail.ts';
import { FIRST_EXAM_SEED, makeSmallMailbox } from './small-mailbox.ts';

export interface Scenario {
  readonly id: string;
  /** Seed of the mailbox. */
  readonly seed: number;
}

// It cannot say that it does not know, so a wrong answer is no worse than none.
export const EDITION: Edition = { maxTurns: 5, maxTokensPerTurn: 64, wrong: 0 };

export const scenarios = mailboxes(0, 4000);
/** Mailboxes with words that are never asked for in the training. */
export const examScenarios = mailboxes(FIRST_EXAM_SEED, 200);

function mailboxes(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `mailbox-${firstSeed + index}`, seed: firstSeed + index }));
}

/** One attempt's mailbox, which remembers what was found and read in it. */
export class Lookup {
  readonly question: string;
  readonly #asked: Question;
  readonly #mails: readonly Mail[];
  readonly #trail: Trail = { found: new Set(), read: new Set() };

  constructor({ seed }: Scenario) {
    const { mails, questions } = makeSmallMailbox(seed);
    this.#mails = mails;
    this.#asked = questions[0]!;
    this.question = this.#asked.text;
  }

  /** Ids of the mails that have the word, the newest first. */
  search(word: string): string {
    const hits = this.#mails.filter(({ body }) => body.match(/\w+/g)?.includes(word)).toReversed();
    for (const { id } of hits) this.#trail.found.add(id);
    return `[${hits.map(({ id }) => id).join(', ')}]`;
  }

  /** Reads a mail. A mistake is told to the model too, which may do better in its next turn. */
  read(id: number): string {
    const mail = this.#mails.find((each) => each.id === id);
    if (mail === undefined) return 'Error: no such id';
    this.#trail.read.add(id);
    return mail.body;
  }

  hasRead(id: number): boolean {
    return this.#trail.read.has(id);
  }

  /** Null for no answer within the turns. */
  grade(answer: string | null, turns: number) {
    const parsed = answer === null ? null : parseSmallAnswer(answer);
    return grade({ answer: parsed, trail: this.#trail, turns }, this.#asked, EDITION);
  }
}

/** A word, and the id of the mail that tells it: `KEL 4`. */
export function parseSmallAnswer(text: string): Answer | null {
  const [, word, id] = /^([A-Z]+)(?: (\d+))?$/.exec(text) ?? [];
  if (word === undefined) return null;
  return { text: word, sources: id === undefined ? [] : [Number(id)] };
}
