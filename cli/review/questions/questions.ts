/** Questions about the attempts of a run, as its reviewers are asked them: pairs, or attempts that need a score. */
import { formatAttemptId } from '../../../core/names/attempt-id.ts';
import type { ExternalConfig, ReviewConfig } from '../../../core/contract/contract.ts';
import { answersTo, scoresOf } from '../../../core/numbers/review.ts';
import { isClosed, listOpenSteps, type AwaitedGroup } from '../../../store/records/rewards/awaited-groups.ts';
import { awaitedAttempts } from '../../../store/records/rewards/given-verdict.ts';
import { comparisonsIn, planGroupPairs, scoresIn } from '../../../store/records/rewards/review-verdict.ts';
import type { AttemptRecord } from '../../../store/records/groups/trajectories.ts';
import type { Store } from '../../../store/store.ts';
import { ReviewQueue, type ReviewProgress, type ReviewQuestion } from './review-queue.ts';

export interface AskedAttempt {
  /** `BRANCH.STEP.GROUP.ATTEMPT`. */
  readonly id: string;
  readonly record: AttemptRecord;
}

/** Which of two attempts is better, or how good one is. */
export type AskedQuestion = ReviewQuestion & { readonly scenarioId: string } & (
    | { readonly left: AskedAttempt; readonly right: AskedAttempt }
    | { readonly attempt: AskedAttempt }
  );
export type PairQuestion = Extract<AskedQuestion, { left: AskedAttempt }>;
export type ScoreQuestion = Extract<AskedQuestion, { attempt: AskedAttempt }>;

/** Next question for a reviewer. */
export interface NextQuestion extends ReviewProgress {
  /** Null if the rewards are given from outside, and not by a review. */
  readonly review: ReviewConfig | null;
  /** Null: nothing is left for this reviewer. */
  readonly question: AskedQuestion | null;
}

/** Names of a question: in forms, and among those that are put off. */
export function pairId(left: string, right: string): string {
  return `${left}-${right}`;
}

export class RunQuestions {
  readonly #store: Store;
  /** Queues by run. */
  readonly #queues = new Map<string, ReviewQueue>();

  constructor(store: Store) {
    this.#store = store;
  }

  async next(run: string, external: ExternalConfig, by: string): Promise<NextQuestion> {
    const { review = null } = external;
    const { questions, decided } = await this.#list(run, review);
    const { reviewers = 1 } = review ?? {};
    const next = this.queueOf(run).next(questions, { by, reviewers, now: Date.now() });
    const before = decided * reviewers;
    return { ...next, answered: next.answered + before, needed: next.needed + before, review };
  }

  /** Open pairs in order, for programs: those that `by` has not answered. */
  async listPairs(run: string, review: ReviewConfig, by: string | null): Promise<PairQuestion[]> {
    const { questions } = await this.#list(run, review);
    return questions.filter(
      (question): question is PairQuestion =>
        'left' in question && question.answeredBy.length < review.reviewers && !question.answeredBy.includes(by ?? ''),
    );
  }

  queueOf(run: string): ReviewQueue {
    const queue = this.#queues.get(run) ?? new ReviewQueue();
    this.#queues.set(run, queue);
    return queue;
  }

  /** Questions of groups that are not decided, and how many there were in those that are. */
  async #list(run: string, review: ReviewConfig | null): Promise<{ questions: AskedQuestion[]; decided: number }> {
    const groups = await listOpenSteps(this.#store, run);
    const open = groups.filter(({ rows }) => !isClosed(rows));
    const questionsOf = (group: AwaitedGroup): AskedQuestion[] =>
      review?.pairwise ? pairsOf(group, review) : attemptsOf(group);
    const decided = groups.filter(({ rows }) => isClosed(rows)).flatMap(questionsOf);
    return { questions: open.flatMap(questionsOf), decided: decided.length };
  }
}

function pairsOf({ place, scenarioId, rollouts, rows }: AwaitedGroup, review: ReviewConfig): PairQuestion[] {
  const records = new Map(rollouts.attempts.map((record) => [record.attempt, record]));
  const given = comparisonsIn(rows);
  return planGroupPairs(rollouts, review).pairs.map((pair) => {
    const left = formatAttemptId({ ...place, attempt: pair.left });
    const right = formatAttemptId({ ...place, attempt: pair.right });
    return {
      id: pairId(left, right),
      answeredBy: answersTo(pair, given).map(({ by }) => by ?? ''),
      scenarioId,
      left: { id: left, record: records.get(pair.left)! },
      right: { id: right, record: records.get(pair.right)! },
    };
  });
}

function attemptsOf({ place, scenarioId, attempts, rows }: AwaitedGroup): ScoreQuestion[] {
  const scores = scoresOf(scoresIn(rows));
  return awaitedAttempts(attempts).map((record) => {
    const id = formatAttemptId({ ...place, attempt: record.attempt });
    const answeredBy = [...(scores.get(record.attempt)?.keys() ?? [])];
    return { id, answeredBy, scenarioId, attempt: { id, record } };
  });
}
