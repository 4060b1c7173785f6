/** Questions that reviewers are asked: which is next for whom. */
import type { ReviewRules } from '../../../core/numbers/review.ts';

/** A pair, or an attempt that needs a score. `id` is its own in the run. */
export interface ReviewQuestion {
  readonly id: string;
  /** Reviewers who have answered it. */
  readonly answeredBy: readonly string[];
}

export interface ReviewProgress {
  /** Answers that were given, of those that are needed. */
  readonly answered: number;
  readonly needed: number;
  /** Questions that this reviewer put off. */
  readonly skipped: number;
}

export interface Asking<Q extends ReviewQuestion> extends ReviewProgress {
  /** Null: nothing is left for this reviewer. */
  readonly question: Q | null;
}

/** A page is open that long before its question may be asked of somebody else. */
const HELD_MS = 5 * 60_000;

/**
 * Questions that reviewers have before them. It lives in the process that serves the pages: without it, two reviewers at once
 * would be asked the same, and nothing worse.
 */
export class ReviewQueue {
  readonly #held = new Map<string, { by: string; until: number }>();
  readonly #skipped = new Map<string, Set<string>>();

  /** The question that this reviewer has before them, else the first open one that nobody else has, else any open one. */
  next<Q extends ReviewQuestion>(
    questions: readonly Q[],
    { by, reviewers, now }: { readonly by: string; readonly now: number } & Pick<ReviewRules, 'reviewers'>,
  ): Asking<Q> {
    const skipped = this.#skipped.get(by) ?? new Set();
    const open = questions.filter(({ answeredBy }) => answeredBy.length < reviewers && !answeredBy.includes(by));
    const wanted = open.filter(({ id }) => !skipped.has(id));
    const isHeldByMe = ({ id }: Q): boolean => this.#holder(id, now) === by;
    const isFree = ({ id }: Q): boolean => this.#holder(id, now) === null;
    const question = wanted.find(isHeldByMe) ?? wanted.find(isFree) ?? wanted[0] ?? null;
    if (question !== null) this.#held.set(question.id, { by, until: now + HELD_MS });
    return {
      question,
      answered: questions.reduce((sum, { answeredBy }) => sum + Math.min(answeredBy.length, reviewers), 0),
      needed: questions.length * reviewers,
      skipped: open.length - wanted.length,
    };
  }

  skip(id: string, by: string): void {
    this.#skipped.set(by, (this.#skipped.get(by) ?? new Set()).add(id));
    this.release(id, by);
  }

  /** Asks again what this reviewer skipped. */
  askAgain(by: string): void {
    this.#skipped.delete(by);
  }

  /** Lets others have a question, as once it is answered. */
  release(id: string, by: string): void {
    if (this.#held.get(id)?.by === by) this.#held.delete(id);
  }

  #holder(id: string, now: number): string | null {
    const held = this.#held.get(id);
    return held === undefined || held.until <= now ? null : held.by;
  }
}
