/** Gives rewards and comparisons to attempts of a run: every way in (command line, file, HTTP, link) comes through here. */
import {
  ATTEMPT_ID_RULE,
  formatAttemptId,
  parseTrainedAttemptId,
  type AttemptPlace,
} from '../../../core/names/attempt-id.ts';
import type { PairAnswer } from '../../../core/numbers/bradley-terry.ts';
import type { ExternalConfig, ReviewConfig } from '../../../core/contract/contract.ts';
import { badConfig, showValue } from '../../../core/contract/failures.ts';
import { isReward, REWARD_RULE } from '../../../core/rules/given-values.ts';
import { branchOfStep, planLineage } from '../../../core/names/lineage.ts';
import type { Pair } from '../../../core/numbers/pairs.ts';
import { turnAnswer } from '../../../core/numbers/review.ts';
import { rolloutsKey, type GroupPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { findGivenProblem, findTextsProblem, type GivenReward } from './given-problems.ts';
import {
  addGiven,
  findAnswer,
  findClosed,
  MOST_CHANGES,
  readGiven,
  type Added,
  type ComparisonRow,
  type GivenRow,
  type RewardRow,
} from './given-rewards.ts';
import { missingAttempts, rewardWith } from './given-verdict.ts';
import { readRollouts } from '../groups/group-files.ts';
import { readBranches } from '../runs/lineage.ts';
import { planGroupPairs } from './review-verdict.ts';
import { requireRunFile } from '../runs/run-reader.ts';
import type { AttemptRecord, Rollouts } from '../groups/trajectories.ts';

/** A comparison as somebody gives it. */
export interface GivenComparison {
  /** `BRANCH.STEP.GROUP.ATTEMPT`, on the side on which it was shown. */
  readonly left: string;
  readonly right: string;
  readonly answer: PairAnswer;
  readonly by: string | null;
  readonly note: string | null;
  /** Idempotency key. */
  readonly key: string | null;
}

export type RewardRefusal =
  | 'bad-attempt'
  | 'unknown-attempt'
  | 'failed-attempt'
  | 'abandoned-branch'
  | 'bad-value'
  | 'decided'
  | 'key-reused'
  | 'too-many-changes';

export type GivingAnswer<Row extends GivenRow = RewardRow> =
  /** `missing`: attempts of its group that still wait; with none, the run should be woken. */
  | { readonly outcome: 'given' | 'same'; readonly row: Row; readonly missing: number; readonly isDecided: boolean }
  | RefusedReward;

export interface RefusedReward {
  readonly outcome: 'refused';
  readonly reason: RewardRefusal;
  readonly message: string;
}

/** Throws BadConfig if there is no such run, or if it takes no rewards from outside. */
export async function openGiver(store: Store, run: string): Promise<Giver> {
  const { external } = (await requireRunFile(store, run)).config;
  if (external === undefined) {
    const remedy = 'give its agent reward: external({ … }), and start another run';
    throw badConfig(`the run ${run} must wait for rewards from outside, but rewards itself; ${remedy}`);
  }
  return new Giver(store, run, external);
}

/** A row that may be added to the ledger of its group. */
interface Found<Row extends GivenRow> {
  readonly place: GroupPlace;
  readonly rollouts: Rollouts;
  readonly row: Row;
  /** The attempt or the attempts that it is about, by name. */
  readonly subject: string;
}

export class Giver {
  readonly #store: Store;
  readonly #run: string;
  readonly #external: ExternalConfig;
  /** Groups by key: they are written once, and a file of rewards names many of one group. */
  readonly #played = new Map<string, Rollouts>();

  constructor(store: Store, run: string, external: ExternalConfig) {
    this.#store = store;
    this.#run = run;
    this.#external = external;
  }

  /** The refusal that a reward would get now; null if it may be given, or is given already. */
  async check(given: GivenReward): Promise<RefusedReward | null> {
    const found = await this.#findReward(given);
    if ('outcome' in found) return found;
    const answer = findAnswer(await readGiven(this.#store, found.place), found.row);
    return answer === null ? null : explain(found, answer);
  }

  async give(given: GivenReward): Promise<GivingAnswer> {
    return this.#add(await this.#findReward(given));
  }

  /** Throws BadConfig if the run is not reviewed by pairs. */
  async compare(given: GivenComparison): Promise<GivingAnswer<ComparisonRow>> {
    return this.#add(await this.#findComparison(given, this.#requirePairs()));
  }

  async #add<Row extends GivenRow>(found: Found<Row> | RefusedReward): Promise<GivingAnswer<Row>> {
    if ('outcome' in found) return found;
    const added = await addGiven(this.#store, found.place, found.row);
    const refusal = explain(found, added);
    if (refusal !== null) return refusal;
    const rows = await readGiven(this.#store, found.place);
    return {
      outcome: added.outcome as 'given' | 'same',
      row: added.row as Row,
      missing: missingAttempts(found.rollouts, rows, this.#external).length,
      isDecided: findClosed(rows) !== undefined,
    };
  }

  async #findReward(given: GivenReward): Promise<Found<RewardRow> | RefusedReward> {
    const run = this.#run;
    const id = parseTrainedAttemptId(given.attempt);
    if (id === null) return this.#misnamed(given.attempt);
    const problem = findGivenProblem(given) ?? findReviewProblem(run, given.reward, this.#external);
    if (problem !== null) return refuse('bad-value', `${problem} (attempt ${given.attempt})`);
    const place = this.#placeOf(id);
    const rollouts = await this.#readRollouts(place);
    const record = rollouts?.attempts.find(({ attempt }) => attempt === id.attempt);
    if (rollouts === null || record === undefined)
      return refuse('unknown-attempt', `the run ${run} has played no attempt ${given.attempt}; ${this.#see()}`);
    const subject = formatAttemptId(id);
    const refusal =
      findRecordProblem(subject, record, given, this.#external) ??
      (await this.#refuseAbandoned(id, `the attempt ${subject}`));
    return refusal ?? { place, rollouts, subject, row: toRow(given, record) };
  }

  async #findComparison(given: GivenComparison, review: ReviewConfig): Promise<Found<ComparisonRow> | RefusedReward> {
    const { by, note, key } = given;
    const [left, right] = [parseTrainedAttemptId(given.left), parseTrainedAttemptId(given.right)];
    if (left === null || right === null) return this.#misnamed(left === null ? given.left : given.right);
    const problem = findTextsProblem(given);
    if (problem !== null) return refuse('bad-value', problem);
    const place = this.#placeOf(left);
    const rollouts = isSameGroup(left, right) ? await this.#readRollouts(place) : null;
    const planned = rollouts && findPlanned(rollouts, { left: left.attempt, right: right.attempt }, review);
    if (rollouts === null || planned === null) {
      const rule = `${given.left} and ${given.right} must be two attempts of the run ${this.#run} that are compared with each other`;
      return refuse('unknown-attempt', `${rule}, but are not; use a pair that temper review lists`);
    }
    const answer = planned.isTurned ? turnAnswer(given.answer) : given.answer;
    const at = new Date().toISOString();
    const row = { schema: 1, kind: 'comparison', ...planned.pair, answer, by, note, at, key } as const;
    const subject = `${given.left} with ${given.right}`;
    return (await this.#refuseAbandoned(left, 'these attempts')) ?? { place, rollouts, subject, row };
  }

  #requirePairs(): ReviewConfig {
    const { review } = this.#external;
    if (review?.pairwise === true) return review;
    const rule = `the run ${this.#run} must be reviewed by pairs to take comparisons, but is not`;
    throw badConfig(`${rule}; give its agent reward: review({ pairwise: true }), and start another run`);
  }

  #placeOf({ branch, step, group }: AttemptPlace): GroupPlace {
    return { run: this.#run, branch, step, group };
  }

  async #readRollouts(place: GroupPlace): Promise<Rollouts | null> {
    const key = rolloutsKey(place);
    const known = this.#played.get(key) ?? (await readRollouts(this.#store, key))?.rollouts ?? null;
    if (known !== null) this.#played.set(key, known);
    return known;
  }

  /** Null for an attempt of the run's lineage: groups of a step before the last rollback may still be open. */
  async #refuseAbandoned({ branch, step }: AttemptPlace, what: string): Promise<RefusedReward | null> {
    const branches = await readBranches(this.#store, this.#run);
    const newest = branches.at(-1)?.branch ?? 0;
    if (branch === branchOfStep(planLineage(branches, newest), step)) return null;
    const rule = `the run ${this.#run} has gone back to another step since: it is on branch ${newest}`;
    return refuse('abandoned-branch', `${rule}, and ${what} on branch ${branch}; ${this.#see()}`);
  }

  #misnamed(name: string): RefusedReward {
    return refuse('bad-attempt', `an attempt must be named ${ATTEMPT_ID_RULE}, got ${showValue(name)}; ${this.#see()}`);
  }

  #see(): string {
    return `see temper rewards ${this.#run}`;
  }
}

function refuse(reason: RewardRefusal, message: string): RefusedReward {
  return { outcome: 'refused', reason, message };
}

/** Null if the row is in the ledger. */
function explain<Row extends GivenRow>(found: Found<Row>, { outcome, row }: Added<Row>): RefusedReward | null {
  const { place, subject } = found;
  const noun = found.row.kind === 'reward' ? 'reward' : 'answer';
  if (outcome === 'key-reused') {
    const rule = `an idempotency key must belong to one ${noun}, but ${showValue(row.key)} was sent with another one`;
    return refuse('key-reused', `${rule}; send ${subject} with a new key`);
  }
  if (outcome === 'full') {
    const rule = `a reward may be changed ${MOST_CHANGES} times, and ${subject} was`;
    return refuse('too-many-changes', `${rule}; it keeps what it had`);
  }
  if (outcome !== 'closed') return null;
  const { run, step, group } = place;
  const article = noun === 'reward' ? 'a reward' : 'an answer';
  if (row.kind === 'closed' && row.reason === 'stale') {
    const left = `group ${group} of step ${step} of the run ${run} was left out at ${row.at}`;
    const rule = `${article} must be given while the policy of its group is recent, and ${left}`;
    return refuse('decided', `${rule}; give those of temper rewards ${run}`);
  }
  const rule = `${article} must be given before its step is decided, and step ${step} of the run ${run} is decided`;
  return refuse('decided', `${rule} (group ${group} since ${row.at}); ${subject} keeps what it had`);
}

/** Null unless people review the run: they score from 0 to 1, or compare. */
function findReviewProblem(run: string, reward: number, { review }: ExternalConfig): string | null {
  if (review === undefined) return null;
  if (review.pairwise)
    return `the run ${run} is reviewed by pairs, which takes comparisons and no rewards; use temper review`;
  return reward >= 0 && reward <= 1 ? null : `the score of a review must be from 0 to 1, got ${reward}; give one`;
}

function findRecordProblem(
  name: string,
  record: AttemptRecord,
  { reward, metrics = {} }: GivenReward,
  external: ExternalConfig,
): RefusedReward | null {
  if (record.status === 'failed')
    return refuse(
      'failed-attempt',
      `the attempt ${name} failed and is not trained, so it takes no reward; leave it out`,
    );
  const weighted = rewardWith(record, reward, external);
  if (!isReward(weighted))
    return refuse(
      'bad-value',
      `the weighted reward must be ${REWARD_RULE}, got ${weighted} (attempt ${name}); give less`,
    );
  const taken = Object.keys(metrics).find((each) => Object.hasOwn(record.metrics, each));
  return taken === undefined
    ? null
    : refuse('bad-value', `a metric must not be one of the agent's, got ${taken} (attempt ${name}); rename it`);
}

/** Metrics in order of their names: bytes of the verdict must not depend on who gave them. */
function toRow(
  { reward, metrics = {}, by = null, note = null, key = null }: GivenReward,
  { attempt }: AttemptRecord,
): RewardRow {
  const sorted = Object.entries(metrics).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const named = sorted.length > 0 && { metrics: Object.fromEntries(sorted) };
  return { schema: 1, kind: 'reward', attempt, reward, ...named, by, note, at: new Date().toISOString(), key };
}

function isSameGroup(one: AttemptPlace, other: AttemptPlace): boolean {
  return one.branch === other.branch && one.step === other.step && one.group === other.group;
}

/** Null if these attempts are not compared; `pair` has them on the planned sides. */
function findPlanned(rollouts: Rollouts, asked: Pair, review: ReviewConfig): { pair: Pair; isTurned: boolean } | null {
  const { pairs } = planGroupPairs(rollouts, review);
  const straight = pairs.find(({ left, right }) => left === asked.left && right === asked.right);
  if (straight !== undefined) return { pair: straight, isTurned: false };
  const turned = pairs.find(({ left, right }) => left === asked.right && right === asked.left);
  return turned === undefined ? null : { pair: turned, isTurned: true };
}
