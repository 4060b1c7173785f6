/** `track`: delivers a run from its store to one target, until the run has ended and the target has all of it. */
import { setTimeout as sleep } from 'node:timers/promises';

import { TrackInput, type TrackResult } from '../core/contract/outbound.ts';
import { TemperError, type FailureType } from '../core/contract/failures.ts';
import { SnapshotReader, type RunSnapshot } from '../outbound/run-snapshot.ts';
import type { Target } from '../outbound/target.ts';
import { beat, runOutcomeOf, deliverNext } from '../outbound/deliver-run.ts';
import { runKey } from '../store/layout.ts';
import type { RunOutcome } from '../store/records/production/outbound-cursor.ts';
import { isEnded } from '../store/records/runs/run-reader.ts';
import { asActivity, type Scope } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export interface OutboundDependencies extends Dependencies {
  /** The target of this name, as this worker is configured. */
  readonly openTarget: (name: string) => Target;
  /** Whether the run's workflow is running, as the server says. */
  readonly isRunning: (run: string) => Promise<boolean>;
  /** For tests. */
  readonly patience?: Patience;
}

interface Patience {
  /** An activity returns after so long, so that its place is free for others. */
  readonly workMs: number;
  readonly pollMs: number;
  /** New rows of a running run wait so long for others: a delivery costs about the same for one as for many. */
  readonly gatherMs: number;
  /** Pause between two questions to the server whether a silent run still exists. */
  readonly askMs: number;
  /** Longest silence towards a target that takes silence for a crash. */
  readonly beatMs: number;
}

const PATIENCE: Patience = { workMs: 120_000, pollMs: 2_000, gatherMs: 5_000, askMs: 15_000, beatMs: 45_000 };

const LONGEST_POLL_MS = 30_000;

const MENDABLE: ReadonlySet<FailureType> = new Set(['BadConfig', 'DeploymentFailed']);

export function createTrackActivities(dependencies: OutboundDependencies) {
  const { store, openTarget, patience = PATIENCE } = dependencies;

  async function track({ run, target: name, from }: TrackInput, scope: Scope): Promise<TrackResult> {
    const target = openTarget(name);
    const watch = new RunWatch(dependencies, run, patience.askMs);
    const endsAt = performance.now() + patience.workMs;
    const deliveryScope = { store, ...scope };
    let deliveredAt = -Infinity;
    let hadAllAt = -Infinity;
    while (!scope.signal.aborted) {
      const { snapshot, outcome } = await watch.look();
      const isDue = outcome !== null || performance.now() - hadAllAt >= patience.gatherMs;
      if (isDue && snapshot !== null) {
        if (await deliverNext(target, snapshot, { outcome, from }, deliveryScope)) {
          deliveredAt = performance.now();
          continue;
        }
        hadAllAt = performance.now();
      }
      if (outcome !== null) return { over: true };
      if (snapshot !== null && performance.now() - deliveredAt > patience.beatMs) {
        await beat(target, snapshot, deliveryScope);
        deliveredAt = performance.now();
      }
      if (performance.now() >= endsAt) return { over: false };
      await sleep(watch.pauseMs(patience.pollMs), undefined, { signal: scope.signal });
    }
    throw scope.signal.reason;
  }

  /** Whatever a target refuses, a person may mend: a key, a right, a name. It is asked again. */
  async function trackForEver(input: TrackInput, scope: Scope): Promise<TrackResult> {
    try {
      return await track(input, scope);
    } catch (error) {
      if (!(error instanceof TemperError) || !MENDABLE.has(error.type)) throw error;
      throw new TemperError('TargetUnavailable', error.message, { cause: error });
    }
  }

  return { track: asActivity(dependencies, TrackInput, trackForEver) };
}

/** A run in its store, and whether it has ended: a run that was killed never says so. */
class RunWatch {
  readonly #dependencies: OutboundDependencies;
  readonly #run: string;
  readonly #reader: SnapshotReader;
  readonly #askMs: number;
  #last: RunSnapshot | null = null;
  #changedAt = -Infinity;
  #writtenAt = performance.now();

  constructor(dependencies: OutboundDependencies, run: string, askMs: number) {
    this.#dependencies = dependencies;
    this.#run = run;
    this.#askMs = askMs;
    this.#reader = new SnapshotReader(dependencies.store, run);
  }

  /** A run that is silent for long is looked at less often. */
  pauseMs(pollMs: number): number {
    return Math.max(pollMs, Math.min(LONGEST_POLL_MS, (performance.now() - this.#writtenAt) / 10));
  }

  async look(): Promise<{ snapshot: RunSnapshot | null; outcome: RunOutcome | null }> {
    const before = await this.#reader.read();
    if (before !== this.#last) this.#changedAt = this.#writtenAt = performance.now();
    this.#last = before;
    if (!(await this.#isOver(before))) return { snapshot: before, outcome: null };
    // Everything that was written before it ended is in the store by now.
    const snapshot = await this.#reader.read();
    return { snapshot, outcome: runOutcomeOf(snapshot) };
  }

  async #isOver(snapshot: RunSnapshot | null): Promise<boolean> {
    const says = snapshot !== null && isEnded(snapshot.state);
    // A script has no workflow of its own: it says when it ends.
    if (snapshot?.file.loop !== undefined) return says;
    if (!says && performance.now() - this.#changedAt < this.#askMs) return false;
    if (await this.#dependencies.isRunning(this.#run)) {
      this.#changedAt = performance.now();
      return false;
    }
    return snapshot !== null || (await this.#dependencies.store.read(runKey(this.#run))) === null;
  }
}
