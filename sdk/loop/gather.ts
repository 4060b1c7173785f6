/** `gatherTrajectoryGroups`: many groups at once, each finished once, whatever becomes of the script. */
import { setMaxListeners } from 'node:events';
import pLimit from 'p-limit';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { Split } from './plan-loop.ts';
import { ATTEMPTS_AT_ONCE } from '../../core/rules/run-defaults.ts';
import { anything, must, oneOf, optional, takes, whole } from '../options/options.ts';
import { toTrajectoryGroup } from './gathered-group.ts';
import { findOrPlay, type AfterEach } from './play-group.ts';
import { TrainableModel } from './trainable-model.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';
import type { Trajectory } from './trajectory.ts';

export interface GatherOptions {
  /** The model whose groups are gathered: its samples are recorded under its next step. */
  model: TrainableModel;
  /** `val` for groups that measure the policy and are never trained. */
  split?: Split;
  /** How many attempts may fail before all is given up: a count, or a share below 1. */
  maxExceptions?: number;
  /** For each group once it is played, and before it is kept: null takes it out. */
  afterEach?: AfterEach;
  /** How many attempts are played at once, in whole groups. */
  concurrency?: number;
  /** Before the progress line on a terminal; null: no line. */
  pbarDesc?: string | null;
  onProgress?: (progress: GatherProgress) => void;
}

const HOW = {
  model: must(
    'the trainable model to sample from',
    (model) => model instanceof TrainableModel,
    'pass { model }',
    () => 'another value',
  ),
  split: oneOf(['train', 'val'], 'pass one of these').optional(),
  afterEach: anything.optional(),
  concurrency: whole(1, `pass ${ATTEMPTS_AT_ONCE}`).optional(),
  ...optional('pbarDesc', 'onProgress'),
};

const failures = must(
  'a count of attempts or a share below 1',
  (value) => typeof value === 'number' && value >= 0 && (value <= 1 || Number.isSafeInteger(value)),
  'pass 0.1 for a tenth',
).optional();

const checkOptions = takes<GatherOptions>('gatherTrajectoryGroups', { ...HOW, maxExceptions: failures });

/** In the order given; groups that afterEach took out are missing. */
export async function gatherTrajectoryGroups(
  groups: Iterable<TrajectoryGroup>,
  options: GatherOptions,
): Promise<TrajectoryGroup[]> {
  checkOptions(options);
  const all = [...groups];
  const { model, split = 'train', afterEach = null } = options;
  checkGroups(all);
  const { run } = model;
  const policy = run.checkpoint;
  const first = run.gathered[split];
  run.gathered[split] += all.length;
  const tally = new Tally(all, options);
  const largest = Math.max(1, ...all.map(({ length }) => length));
  const limit = pLimit(Math.max(1, Math.floor((options.concurrency ?? ATTEMPTS_AT_ONCE) / largest)));
  const step = split === 'train' ? run.step + 1 : run.step;
  const playing = all.map((group, index) =>
    limit(async () => {
      tally.signal.throwIfAborted();
      const planned = {
        split,
        step,
        group: first + index,
        attempts: group.attempts.length,
        metadata: { ...group.metadata },
      };
      const work = { run, group, planned, policy, afterEach, signal: tally.signal };
      const { stored, isNew } = await findOrPlay({ ...work, onAttempt: (outcome) => tally.add(outcome) });
      const gathered = toTrajectoryGroup(stored, split);
      if (!isNew) tally.addFound(stored.rollouts.attempts.length, gathered);
      return gathered;
    }),
  );
  const settled = await Promise.allSettled(playing);
  tally.close();
  const failed = settled.find((result) => result.status === 'rejected');
  if (failed !== undefined && run.gathered[split] === first + all.length) run.gathered[split] = first;
  if (tally.error !== null) throw tally.error;
  if (failed !== undefined) throw failed.reason;
  return settled.flatMap((result) => (result.status === 'fulfilled' && result.value !== null ? [result.value] : []));
}

type Sum = readonly [sum: number, count: number];

const NOTHING: Sum = [0, 0];
const plus = ([sum, count]: Sum, value: number): Sum => [sum + value, count + 1];

/** Outcomes of a gathering so far; too many failures end it. */
class Tally {
  error: TemperError | null = null;
  readonly #ended = new AbortController();
  readonly #allowed: number;
  readonly #total: number;
  #done = 0;
  #exceptions = 0;
  // It is called after each of thousands of attempts, and keeps no list.
  #rewards = NOTHING;
  readonly #metrics = new Map<string, Sum>();
  readonly #line: (progress: GatherProgress, isLast: boolean) => void;
  readonly #onProgress: ((progress: GatherProgress) => void) | undefined;

  constructor(
    groups: readonly TrajectoryGroup[],
    { maxExceptions = 0, pbarDesc = 'gather', onProgress }: GatherOptions,
  ) {
    this.#total = groups.reduce((sum, { length }) => sum + length, 0);
    this.#allowed = maxExceptions < 1 ? Math.floor(maxExceptions * this.#total) : maxExceptions;
    // One listener for each group, and there may be hundreds.
    setMaxListeners(0, this.#ended.signal);
    this.#line = openProgressLine(pbarDesc);
    this.#onProgress = onProgress;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  add(outcome: { trajectories: readonly Trajectory[] } | { error: unknown }): void {
    this.#done += 1;
    if ('trajectories' in outcome) outcome.trajectories.forEach((each) => this.#count(each));
    else this.#addException(outcome.error);
    this.#report(false);
  }

  /** A group that an earlier script finished. */
  addFound(attempts: number, group: TrajectoryGroup | null): void {
    this.#done += attempts;
    for (const trajectory of group ?? []) this.#count(trajectory);
    for (const { type, message } of group?.exceptions ?? []) this.#addException(new Error(`${type}: ${message}`));
    this.#report(false);
  }

  close(): void {
    this.#report(true);
  }

  #count({ totalReward, metrics }: Trajectory): void {
    this.#rewards = plus(this.#rewards, totalReward);
    for (const [name, value] of Object.entries(metrics))
      this.#metrics.set(name, plus(this.#metrics.get(name) ?? NOTHING, Number(value)));
  }

  #addException(cause: unknown): void {
    this.#exceptions += 1;
    if (this.#exceptions <= this.#allowed || this.error !== null) return;
    const reason = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
    this.error = new TemperError(
      'AgentFailed',
      `at most ${this.#allowed} of ${this.#total} attempts may fail (maxExceptions), ${this.#exceptions} did, the last with ${reason}; fix the rollout and run the script again, or raise maxExceptions`,
      { cause },
    );
    this.#ended.abort(this.error);
  }

  #report(isLast: boolean): void {
    const done = this.#done;
    const total = this.#total;
    const exceptions = this.#exceptions;
    const metrics = Object.fromEntries([...this.#metrics].map(([name, [sum, count]]) => [name, sum / count]));
    const [rewards, rewarded] = this.#rewards;
    const progress = { done, total, exceptions, reward: rewarded === 0 ? null : rewards / rewarded, metrics };
    this.#line(progress, isLast);
    if (!isLast) this.#onProgress?.(progress);
  }
}

function checkGroups(groups: readonly TrajectoryGroup[]): void {
  const finished = groups.findIndex(({ attempts }) => attempts.length === 0);
  if (finished < 0) return;
  throw badConfig(
    `groups to gather must hold rollout functions, group ${finished} has none; write new TrajectoryGroup([() => rollout(model, scenario), …])`,
  );
}

export interface BatchOptions extends Omit<GatherOptions, 'maxExceptions'> {
  batchSize: number;
  /** `maxExceptions` of each batch. */
  maxBatchExceptions?: number;
  /** Pass `await model.getStep()` to continue where the script stopped. */
  skipBatches?: number;
}

const checkBatches = takes<BatchOptions>('trajectoryGroupBatches', {
  ...HOW,
  batchSize: whole(1, 'pass 8'),
  maxBatchExceptions: failures,
  skipBatches: whole(0, 'pass 0').optional(),
});

/**
 * Groups in batches of the order given, one gathered after the other: a batch that began before the one before it was
 * trained would be sampled by another policy than the one that it trains.
 */
export function trajectoryGroupBatches(
  groups: Iterable<TrajectoryGroup>,
  options: BatchOptions,
): AsyncGenerator<TrajectoryGroup[]> {
  return batches([...groups], checkBatches(options));
}

async function* batches(
  groups: readonly TrajectoryGroup[],
  { batchSize, maxBatchExceptions = 0, skipBatches = 0, ...options }: BatchOptions,
): AsyncGenerator<TrajectoryGroup[]> {
  for (let start = batchSize * skipBatches; start < groups.length; start += batchSize) {
    const batch = groups.slice(start, start + batchSize);
    yield await gatherTrajectoryGroups(batch, { ...options, maxExceptions: maxBatchExceptions });
  }
}

/** How far a gathering is, in one line of a terminal. */
export interface GatherProgress {
  done: number;
  total: number;
  exceptions: number;
  /** Null until an attempt has one. */
  reward: number | null;
  metrics: Record<string, number>;
}

const EVERY_MS = 100;
const MAX_METRICS = 4;

/** Rewritten in place on a terminal; anywhere else nothing is printed. */
function openProgressLine(description: string | null): (progress: GatherProgress, isLast: boolean) => void {
  if (description === null || !process.stderr.isTTY) return () => undefined;
  let reportedAt = -Infinity;
  return (progress, isLast) => {
    if (!isLast && performance.now() - reportedAt < EVERY_MS) return;
    reportedAt = performance.now();
    process.stderr.write(`\r\u001B[K${describeProgress(description, progress)}${isLast ? '\n' : ''}`);
  };
}

function describeProgress(description: string, { done, total, exceptions, reward, metrics }: GatherProgress): string {
  const shown = Object.entries(metrics).slice(0, MAX_METRICS);
  return [
    `${description} ${done}/${total}`,
    ...(reward === null ? [] : [`reward ${reward.toFixed(3)}`]),
    ...shown.map(([name, value]) => `${name} ${value.toFixed(3)}`),
    ...(exceptions === 0 ? [] : [`exceptions ${exceptions}`]),
  ].join(' · ');
}
