import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { anything, takes } from '../options/options.ts';
import { Trajectory, type Metadata } from './trajectory.ts';

/** The context of an attempt, the same in every repetition. */
export interface AttemptContext {
  /** Its place in the group. */
  readonly attempt: number;
  /** In [0, 1), seeded. */
  readonly random: () => number;
  /** Aborted when the attempt ends. */
  readonly signal: AbortSignal;
  /** Runs a side effect once, however often the attempt is repeated; its value must be JSON. */
  readonly once: <T>(name: string, fn: () => T | Promise<T>) => Promise<T>;
}

/** Begun by gathering, which records what it asks: a promise would have begun before anybody could. */
export type Attempt = (context: AttemptContext) => AttemptResult | Promise<AttemptResult>;

/** With roles, a trajectory for each of them; null for one that did not play in this attempt. */
export type AttemptResult = Trajectory | Readonly<Record<string, Trajectory | null>>;

export interface AttemptException {
  readonly attempt: number;
  readonly type: string;
  readonly message: string;
}

export interface TrajectoryGroupOptions {
  /** `scenarioId` names it in results, and tells a script that was changed and begins again from the one before. */
  metadata?: Metadata;
}

const checkOptions = takes<TrajectoryGroupOptions>('TrajectoryGroup', { metadata: anything.optional() });

/** Attempts of one scenario: as functions until they are gathered, as trajectories after that. */
export class TrajectoryGroup implements Iterable<Trajectory> {
  trajectories: Trajectory[];
  readonly attempts: readonly Attempt[];
  metadata: Metadata;
  /** Attempts that failed; set by gathering. */
  exceptions: AttemptException[] = [];

  constructor(members: Iterable<Trajectory | Attempt>, options: TrajectoryGroupOptions = {}) {
    const { metadata } = checkOptions(options);
    const all = [...members];
    this.trajectories = all.filter((member) => member instanceof Trajectory);
    this.attempts = all.filter((member) => typeof member === 'function');
    this.metadata = { ...metadata };
    const count = this.trajectories.length + this.attempts.length;
    if (count < all.length) throw noMember(all.find((member) => !isMember(member)));
    if (this.attempts.length > 0 && this.trajectories.length > 0) throw mixed();
  }

  get length(): number {
    return this.trajectories.length + this.attempts.length;
  }

  [Symbol.iterator](): Iterator<Trajectory> {
    return this.trajectories[Symbol.iterator]();
  }
}

function isMember(member: unknown): boolean {
  return member instanceof Trajectory || typeof member === 'function';
}

function noMember(member: unknown): TemperError {
  const found = member instanceof Promise ? 'a promise, whose calls were made before Temper could record them' : member;
  return badConfig(
    `a TrajectoryGroup holds rollout functions or trajectories, got ${String(found)}; write () => rollout(model, scenario)`,
  );
}

function mixed(): TemperError {
  return badConfig(
    'a TrajectoryGroup holds either rollout functions or trajectories, got both; gather the functions first',
  );
}
