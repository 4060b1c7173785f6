/** What a store says of who needs which weights and blobs, read in one pass. What follows from it is in `live-blobs.ts`. */
import pLimit, { type LimitFunction } from 'p-limit';

import type { RunState } from '../../../core/contract/contract.ts';
import type { Policy } from '../../../core/names/policy-name.ts';
import * as layout from '../../layout.ts';
import type { StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { listSteps } from '../runs/checkpoints.ts';
import { childNames, childNumbers } from '../children.ts';
import { unfinishedDeployments, type RecordedDeployment } from '../production/deployments.ts';
import { readStored, ScheduleFileSchema } from '../file-schemas.ts';
import type { Commit } from '../runs/manifest.ts';
import { promotionsInEffect, readPromotions, type Promotion } from '../runs/promotions.ts';
import { readPruned, type Pruned } from '../runs/pruned.ts';
import { isEnded, readCommit, readRunFile, readState, type RunFile } from '../runs/run-reader.ts';
import { readFirings, type Firing, type ScheduleFile } from '../production/schedules.ts';
import { readServers } from '../production/servers.ts';
import { findLastAnswering } from '../production/serving-checkpoint.ts';

interface IndexedStep extends StepPlace {
  readonly commit: Commit;
  readonly pruned: Pruned;
}

export interface IndexedRun {
  readonly run: string;
  /** Null: it is no run yet, or no longer. A copy writes `run.json` last, and who deletes a run removes it first. */
  readonly file: RunFile | null;
  readonly state: RunState | null;
  readonly isUnderWay: boolean;
  readonly branches: readonly number[];
  /** Those that are committed. */
  readonly steps: readonly IndexedStep[];
  /** Hashes of blobs that its files name, those of its steps apart. */
  readonly named: readonly string[];
}

interface IndexedSchedule {
  readonly name: string;
  /** Null once it was deleted. */
  readonly file: ScheduleFile | null;
  readonly firings: readonly Firing[];
  readonly named: readonly string[];
}

export interface StoreIndex {
  readonly runs: readonly IndexedRun[];
  readonly schedules: readonly IndexedSchedule[];
  /** Deployments in progress. */
  readonly deployments: readonly RecordedDeployment[];
  /** By run: promotions in effect, the current one last; without any, the policy that answered last. */
  readonly production: readonly { run: string; inEffect: readonly Promotion[]; answering: Policy | null }[];
  readonly servers: Awaited<ReturnType<typeof readServers>>;
}

/** Objects that are read at the same time. */
const AT_ONCE = 32;

/**
 * Manifests take the longest and never change: they are read first, and after them what may have changed meanwhile.
 * `known`: those that were read before.
 */
export async function readStoreIndex(
  store: Store,
  known: readonly (StepPlace & { readonly commit: Commit })[] = [],
): Promise<StoreIndex> {
  const limit = pLimit(AT_ONCE);
  const commits = new Map(known.map((step) => [layout.manifestKey(step), step.commit]));
  const reader = new RunReader(store, limit, commits);
  await eachName(store, layout.RUNS_PREFIX, (run) => reader.readCommits(run));
  const runs = await eachName(store, layout.RUNS_PREFIX, (run) => reader.readRun(run));
  return {
    runs,
    schedules: await eachName(store, layout.SCHEDULES_PREFIX, (name) => readSchedule(store, limit, name)),
    deployments: (await Promise.all(runs.map(({ run }) => limit(unfinishedDeployments, store, run)))).flat(),
    production: await eachName(store, layout.PRODUCTION_PREFIX, (run) => limit(readProduction, store, run)),
    servers: await readServers(store),
  };
}

async function eachName<T>(store: Store, prefix: string, read: (name: string) => Promise<T>): Promise<T[]> {
  return Promise.all((await childNames(store, prefix)).map(read));
}

class RunReader {
  readonly #store: Store;
  readonly #limit: LimitFunction;
  readonly #commits: Map<string, Commit>;

  constructor(store: Store, limit: LimitFunction, commits: Map<string, Commit>) {
    this.#store = store;
    this.#limit = limit;
    this.#commits = commits;
  }

  async readCommits(run: string): Promise<(StepPlace & { commit: Commit })[]> {
    const places = await this.#limit(listSteps, this.#store, run);
    const steps = places.map(async (place) => {
      const key = layout.manifestKey(place);
      const commit = this.#commits.get(key) ?? (await this.#limit(readCommit, this.#store, place));
      if (commit !== null) this.#commits.set(key, commit);
      return commit === null ? [] : [{ ...place, commit }];
    });
    return (await Promise.all(steps)).flat();
  }

  async readRun(run: string): Promise<IndexedRun> {
    const [store, limit] = [this.#store, this.#limit];
    const file = await limit(readRunFile, store, run);
    const state = file === null ? null : await limit(readState, store, run);
    const branches = await limit(childNumbers, store, layout.branchesPrefix(run));
    const parts = await limit(childNames, store, layout.scenarioPartsPrefix(run));
    const keys = [
      ...[layout.runKey, layout.preparedKey, layout.vocabularyKey].map((keyOf) => keyOf(run)),
      ...parts.map((name) => `${layout.scenarioPartsPrefix(run)}/${name}`),
    ];
    const steps = (await this.readCommits(run)).map(async (step) => {
      return { ...step, pruned: await limit(readPruned, store, step) };
    });
    return {
      run,
      file,
      state,
      isUnderWay: file !== null && (state === null || !isEnded(state)),
      branches,
      steps: await Promise.all(steps),
      named: await readHashes(store, limit, keys),
    };
  }
}

async function readSchedule(store: Store, limit: LimitFunction, name: string): Promise<IndexedSchedule> {
  const file = await readStored(store, layout.scheduleKey(name), ScheduleFileSchema);
  const keys = (await childNames(store, layout.firingsPrefix(name))).map(
    (each) => `${layout.firingsPrefix(name)}/${each}`,
  );
  return {
    name,
    file: file === null || file.isDeleted ? null : file,
    firings: await readFirings(store, name),
    named: await readHashes(store, limit, keys),
  };
}

async function readProduction(store: Store, run: string): Promise<StoreIndex['production'][number]> {
  const inEffect = promotionsInEffect(await readPromotions(store, run));
  return { run, inEffect, answering: inEffect.length > 0 ? null : await findLastAnswering(store, run) };
}

async function readHashes(store: Store, limit: LimitFunction, keys: readonly string[]): Promise<string[]> {
  const files = await Promise.all(keys.map((key) => limit(() => store.read(key))));
  return files.flatMap((bytes) => (bytes === null ? [] : hashesIn(Buffer.from(bytes).toString())));
}

/** A file names a blob by its key; a chat template by its hash alone. */
const BLOB = /(?:blobs\/|"chatTemplateSha256":")([0-9a-f]{64})/g;

/** Hashes of the blobs that a text in JSON names. */
export function hashesIn(text: string): string[] {
  return [...text.matchAll(BLOB)].map(([, hash]) => hash!);
}
