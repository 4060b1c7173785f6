/** Gives rewards to attempts of a run: every way in (command line, file, HTTP, link) comes through here. */
import type { ExternalConfig } from '../../core/contract.ts';
import { ATTEMPT_ID_RULE, formatAttemptId, parseAttemptId, type AttemptPlace } from '../../core/attempt-id.ts';
import { badConfig } from '../../core/failures.ts';
import { findMetricNameProblem, isReward, REWARD_RULE } from '../../core/given-values.ts';
import { branchOfStep, planLineage } from '../../core/lineage.ts';
import { isNamedReward } from '../../core/named-rewards.ts';
import { showValue } from '../../core/show-value.ts';
import { rolloutsKey, type GroupPlace } from '../layout.ts';
import type { Store } from '../store.ts';
import { readBranches } from './lineage.ts';
import { addGift, findAnswer, MOST_CHANGES, readGiven, type Added, type RewardRow } from './given-rewards.ts';
import { missingAttempts, rewardWith } from './given-verdict.ts';
import { readRollouts } from './group-files.ts';
import { requireRun } from './run-reader.ts';
import type { AttemptRecord, Rollouts } from './trajectories.ts';

/** A reward as somebody gives it. JSON from outside may hold anything. */
export interface GivenReward {
  /** `BRANCH.STEP.GROUP.ATTEMPT`. */
  readonly attempt: string;
  readonly reward: number;
  readonly metrics?: Readonly<Record<string, number>>;
  readonly by?: string | null;
  readonly note?: string | null;
  /** Idempotency key. */
  readonly key?: string | null;
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

export type GivingAnswer =
  /** `missing`: attempts of its group that still have no reward; with none, the run should be woken. */
  | {
      readonly outcome: 'given' | 'same';
      readonly row: RewardRow;
      readonly missing: number;
      readonly isDecided: boolean;
    }
  | RefusedReward;

export interface RefusedReward {
  readonly outcome: 'refused';
  readonly reason: RewardRefusal;
  readonly message: string;
}

export const MAX_BY = 200;
export const MAX_NOTE = 2000;
export const MAX_KEY = 200;
const MAX_METRICS = 32;
const METRIC_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,62}$/;

export interface Giver {
  /** The refusal that a reward would get now; null if it may be given, or is given already. */
  check(gift: GivenReward): Promise<RefusedReward | null>;
  give(gift: GivenReward): Promise<GivingAnswer>;
}

/** Throws BadConfig if there is no such run, or if it takes no rewards from outside. */
export async function openGiver(store: Store, run: string): Promise<Giver> {
  const { file } = await requireRun(store, run);
  const { external } = file.config;
  if (external === undefined) {
    const remedy = 'give its agent reward: external({ … }), and start another run';
    throw badConfig(`the run ${run} must wait for rewards from outside, but rewards itself; ${remedy}`);
  }
  return new RunGiver(store, run, external);
}

interface Found {
  readonly place: GroupPlace;
  readonly record: AttemptRecord;
  readonly rollouts: Rollouts;
}

class RunGiver implements Giver {
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

  async check(gift: GivenReward): Promise<RefusedReward | null> {
    const found = await this.#find(gift);
    if ('outcome' in found) return found;
    const answer = findAnswer(await readGiven(this.#store, found.place), toRow(gift, found.record));
    return answer === null ? null : this.#explain(found, answer);
  }

  async give(gift: GivenReward): Promise<GivingAnswer> {
    const found = await this.#find(gift);
    if ('outcome' in found) return found;
    const added = await addGift(this.#store, found.place, toRow(gift, found.record));
    const refusal = this.#explain(found, added);
    if (refusal !== null) return refusal;
    const rows = await readGiven(this.#store, found.place);
    return {
      outcome: added.outcome as 'given' | 'same',
      row: added.row as RewardRow,
      missing: missingAttempts(found.rollouts, rows, this.#external).length,
      isDecided: rows.some(({ kind }) => kind === 'closed'),
    };
  }

  async #find(gift: GivenReward): Promise<Found | RefusedReward> {
    const run = this.#run;
    const id = parseAttemptId(gift.attempt);
    const wanted = showValue(gift.attempt);
    if (id === null)
      return refuse('bad-attempt', `an attempt must be named ${ATTEMPT_ID_RULE}, got ${wanted}; ${see(run)}`);
    const problem = findGiftProblem(gift) ?? findReviewProblem(run, gift.reward, this.#external);
    if (problem !== null) return refuse('bad-value', `${problem} (attempt ${gift.attempt})`);
    const place = { run, branch: id.branch, step: id.step, group: id.group };
    const rollouts = await this.#readRollouts(place);
    const record = rollouts?.attempts.find(({ attempt }) => attempt === id.attempt);
    if (rollouts === null || record === undefined)
      return refuse('unknown-attempt', `the run ${run} has played no attempt ${gift.attempt}; ${see(run)}`);
    return (await this.#refuseAttempt(id, record, gift)) ?? { place, record, rollouts };
  }

  async #refuseAttempt(id: AttemptPlace, record: AttemptRecord, gift: GivenReward): Promise<RefusedReward | null> {
    const { reward, metrics = {} } = gift;
    const name = formatAttemptId(id);
    if (record.status === 'failed')
      return refuse(
        'failed-attempt',
        `the attempt ${name} failed and is not trained, so it takes no reward; leave it out`,
      );
    const weighted = rewardWith(record, reward, this.#external);
    if (!isReward(weighted))
      return refuse(
        'bad-value',
        `the weighted reward must be ${REWARD_RULE}, got ${weighted} (attempt ${name}); give less`,
      );
    const taken = Object.keys(metrics).find((each) => Object.hasOwn(record.metrics, each));
    if (taken !== undefined)
      return refuse('bad-value', `a metric must not be one of the agent's, got ${taken} (attempt ${name}); rename it`);
    return refuseAbandoned(this.#store, this.#run, id, `the attempt ${name}`);
  }

  async #readRollouts(place: GroupPlace): Promise<Rollouts | null> {
    const key = rolloutsKey(place);
    const known = this.#played.get(key) ?? (await readRollouts(this.#store, key))?.rollouts ?? null;
    if (known !== null) this.#played.set(key, known);
    return known;
  }

  #explain({ place, record }: Found, { outcome, row }: Added<RewardRow>): RefusedReward | null {
    const name = formatAttemptId({ ...place, attempt: record.attempt });
    if (outcome === 'key-reused') {
      const rule = 'an idempotency key must belong to one reward';
      return refuse(
        'key-reused',
        `${rule}, but ${showValue(row.key)} was sent with another one; send ${name} with a new key`,
      );
    }
    if (outcome === 'full') return refuseMore(name);
    if (outcome !== 'closed') return null;
    if (row.kind === 'closed' && row.reason === 'stale') {
      const left = `group ${place.group} of step ${place.step} of the run ${place.run} was left out at ${row.at}`;
      return refuse(
        'decided',
        `a reward must be given while the policy of its group is recent, and ${left}; give those of temper rewards ${place.run}`,
      );
    }
    const rule = `a reward must be given before its step is decided, and step ${place.step} of the run ${place.run} is decided`;
    return refuse('decided', `${rule} (group ${place.group} since ${row.at}); ${name} keeps what it had`);
  }
}

/** Null unless people review the run: they score from 0 to 1, or compare. */
function findReviewProblem(run: string, reward: number, { review }: ExternalConfig): string | null {
  if (review === undefined) return null;
  if (review.pairwise)
    return `the run ${run} is reviewed by pairs, which takes comparisons and no rewards; use temper review`;
  return reward >= 0 && reward <= 1 ? null : `the score of a review must be from 0 to 1, got ${reward}; give one`;
}

/** Null for an attempt of the run's lineage: groups of a step before the last rollback may still be open. */
export async function refuseAbandoned(
  store: Store,
  run: string,
  { branch, step }: Pick<AttemptPlace, 'branch' | 'step'>,
  what: string,
): Promise<RefusedReward | null> {
  const branches = await readBranches(store, run);
  const newest = branches.at(-1)?.branch ?? 0;
  if (branch === branchOfStep(planLineage(branches, newest), step)) return null;
  const rule = `the run ${run} has gone back to another step since: it is on branch ${newest}`;
  return refuse('abandoned-branch', `${rule}, and ${what} on branch ${branch}; ${see(run)}`);
}

export function refuseMore(what: string): RefusedReward {
  return refuse(
    'too-many-changes',
    `a reward may be changed ${MOST_CHANGES} times, and ${what} was; it keeps what it had`,
  );
}

export function see(run: string): string {
  return `see temper rewards ${run}`;
}

export function refuse(reason: RewardRefusal, message: string): RefusedReward {
  return { outcome: 'refused', reason, message };
}

/** Metrics in order of their names: bytes of the verdict must not depend on who gave them. */
function toRow(
  { reward, metrics = {}, by = null, note = null, key = null }: GivenReward,
  record: AttemptRecord,
): RewardRow {
  const sorted = Object.entries(metrics).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    schema: 1,
    kind: 'reward',
    attempt: record.attempt,
    reward,
    ...(sorted.length > 0 && { metrics: Object.fromEntries(sorted) }),
    by,
    note,
    at: new Date().toISOString(),
    key,
  };
}

/** The mistake in what was sent; null if there is none. */
function findGiftProblem({ reward, metrics = {}, by = null, note = null, key = null }: GivenReward): string | null {
  if (!isReward(reward)) return `the reward must be ${REWARD_RULE}, got ${showValue(reward)}; give one`;
  return (
    findMetricsProblem(metrics) ??
    findTextProblem('by', by, MAX_BY) ??
    findTextProblem('note', note, MAX_NOTE) ??
    findTextProblem('key', key, MAX_KEY)
  );
}

function findMetricsProblem(metrics: unknown): string | null {
  if (typeof metrics !== 'object' || metrics === null || Array.isArray(metrics))
    return `metrics must be numbers by name, got ${showValue(metrics)}; send { tone: 1 }`;
  const entries = Object.entries(metrics);
  if (entries.length > MAX_METRICS)
    return `a reward may have ${MAX_METRICS} metrics, got ${entries.length}; send fewer`;
  const misnamed = entries.find(([name]) => !METRIC_NAME.test(name) || isNamedReward(name));
  if (misnamed !== undefined)
    return `a metric must be named by letters, digits, _, - and ., got ${showValue(misnamed[0])}; rename it`;
  const own = findMetricNameProblem(Object.keys(metrics));
  const wrong = entries.find(([, value]) => typeof value !== 'number' || !Number.isFinite(value));
  return own !== null || wrong === undefined
    ? own
    : `the metric ${wrong[0]} must be a finite number, got ${showValue(wrong[1])}; correct it, or leave it out`;
}

export function findTextProblem(name: string, text: unknown, most: number): string | null {
  if (text === null || (typeof text === 'string' && text.length <= most && text.trim() !== '')) return null;
  return `${name} must be a text of 1 to ${most} characters, got ${showValue(text)}; shorten it, or leave it out`;
}
