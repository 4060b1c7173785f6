/** One attempt's mailbox for agents that bring their own tool loop: what its tools say, and what an answer earns. */
import { grade, type Seen } from './grade.ts';
import { makeMailbox, type Mailbox, type Scenario } from './mailbox.ts';

export class Inbox {
  readonly question: string;
  readonly #mailbox: Mailbox;
  readonly #seen: Seen = { found: new Set(), read: new Set() };

  constructor({ seed }: Scenario) {
    this.#mailbox = makeMailbox(seed);
    this.question = this.#mailbox.question.text;
  }

  /** Ids of the mails that have the word, the newest first. */
  search(word: string): string {
    const hits = this.#mailbox.mails.filter(({ body }) => body.match(/\w+/g)?.includes(word)).toReversed();
    for (const { id } of hits) this.#seen.found.add(id);
    return `[${hits.map(({ id }) => id).join(', ')}]`;
  }

  /** Reads a mail. A mistake is told to the model too, which may do better in its next turn. */
  read(id: number): string {
    const mail = this.#mailbox.mails.find((each) => each.id === id);
    if (mail === undefined) return 'Error: no such id';
    this.#seen.read.add(id);
    return mail.body;
  }

  hasRead(id: number): boolean {
    return this.#seen.read.has(id);
  }

  /** Null for no answer within the turns. */
  grade(answer: string | null, turns: number) {
    return grade(answer, this.#seen, turns, this.#mailbox.question);
  }
}
