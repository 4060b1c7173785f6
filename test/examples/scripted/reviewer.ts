/** A reviewer that is a script: it asks `temper review` what is open, and answers each question after a while. */
import { seededRandom } from '../../../sdk/index.ts';
import { scoreReply } from '../../../examples/support-review/taste.ts';
import { MOODS, readReply, TOPICS, type Scenario } from '../../../examples/support-review/tickets.ts';

export interface ReviewerOptions {
  /** Address of `temper review`, and the key that it was started with. */
  readonly url: string;
  readonly key: string;
  readonly run: string;
  readonly name: string;
  /** Compares two replies at a time, for runs that are reviewed by pairs. */
  readonly pairs: boolean;
  /** Mean time until a question is answered. */
  readonly delayMs: number;
  /** Share of answers that are given by chance. */
  readonly mistakes: number;
  readonly seed: string;
}

/** An open question by its own name, and the request that answers it. */
interface Question {
  readonly id: string;
  readonly path: string;
  readonly answer: (random: () => number) => Record<string, unknown>;
}

/** An attempt in the server's list. */
interface Attempt {
  readonly attempt: string;
  readonly messages: readonly { readonly content?: string | null }[];
}

export class ScriptedReviewer {
  readonly #options: ReviewerOptions;
  readonly #dueAt = new Map<string, number>();
  readonly #answered = new Set<string>();

  constructor(options: ReviewerOptions) {
    this.#options = options;
  }

  /** Answers what is due, and returns how many answers that were. */
  async round(now: number): Promise<number> {
    const { pairs, delayMs } = this.#options;
    const open = await (pairs ? this.#listPairs() : this.#listAttempts());
    const fresh = open.filter(({ id }) => !this.#answered.has(id));
    for (const { id } of fresh)
      if (!this.#dueAt.has(id)) this.#dueAt.set(id, now + 2 * delayMs * this.#random('delay', id)());
    const due = fresh.filter(({ id }) => this.#dueAt.get(id)! <= now);
    for (const question of due) await this.#give(question);
    return due.length;
  }

  /** The same draws for the same question, whenever it is asked. */
  #random(...what: string[]): () => number {
    const { seed, name } = this.#options;
    return seededRandom(seed, name, ...what);
  }

  async #listPairs(): Promise<Question[]> {
    const { run, name, mistakes } = this.#options;
    const path = `/v1/runs/${run}/comparisons`;
    const { pairs } = await this.#ask<{ pairs: { scenario: string; left: Attempt; right: Attempt }[] }>(
      `${path}?by=${encodeURIComponent(name)}`,
    );
    return pairs.map(({ scenario, left, right }) => ({
      id: `${left.attempt}-${right.attempt}`,
      path,
      answer: (random) => {
        const [one, other] = [scoreOf(scenario, left), scoreOf(scenario, right)];
        const taste = one === other ? 'equal' : one > other ? 'left' : 'right';
        const chance = ANSWERS[Math.floor(random() * ANSWERS.length)];
        return { left: left.attempt, right: right.attempt, answer: random() < mistakes ? chance : taste };
      },
    }));
  }

  async #listAttempts(): Promise<Question[]> {
    const { run, mistakes } = this.#options;
    const { awaited } = await this.#ask<{ awaited: { attempt: string; scenario: string; lastMessage: string }[] }>(
      `/v1/runs/${run}/rewards`,
    );
    return awaited.map(({ attempt, scenario, lastMessage }) => ({
      id: attempt,
      path: `/v1/runs/${run}/attempts/${attempt}/reward`,
      answer: (random) => {
        const chance = random();
        const taste = scoreOf(scenario, { attempt, messages: [{ content: lastMessage }] });
        return { reward: random() < mistakes ? chance : taste };
      },
    }));
  }

  async #give({ id, path, answer }: Question): Promise<void> {
    this.#answered.add(id);
    await this.#ask(path, { ...answer(this.#random('answer', id)), by: this.#options.name });
  }

  async #ask<T>(path: string, body?: object): Promise<T> {
    const { url, key } = this.#options;
    const response = await fetch(new URL(path, url), {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as T & { error?: { message: string } };
    // Another reviewer may have been faster: the question is decided, and that is that.
    if (response.ok || (body !== undefined && response.status === CONFLICT)) return answer;
    throw new Error(`${path}: ${response.status} ${answer.error?.message}`);
  }
}

const ANSWERS = ['left', 'equal', 'right'];
const CONFLICT = 409;

function scoreOf(scenario: string, { messages }: Attempt): number {
  return scoreReply(readTicket(scenario), readReply(messages.at(-1)?.content ?? ''));
}

/** The ticket that a scenario's id names. */
function readTicket(id: string): Pick<Scenario, 'topic' | 'mood'> {
  const [, topic, mood] = /-([a-z]+)-([a-z]+)$/.exec(id) ?? [];
  return { topic: TOPICS.find((each) => each === topic)!, mood: MOODS.find((each) => each === mood)! };
}
