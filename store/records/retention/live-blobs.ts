/** Which blobs and checkpoints of a store are needed, and why: pure functions of its index. */
import type { Checkpoint } from '../../../core/contract/contract.ts';
import { parsePolicyName, policyName, type Policy } from '../../../core/names/policy-name.ts';
import { policiesOf, type Commit } from '../runs/manifest.ts';
import { blobsWithout, type Pruned } from '../runs/pruned.ts';
import { referencesOf } from '../runs/references.ts';
import { newestOf } from '../production/schedules.ts';
import { hashesIn, type IndexedRun, type StoreIndex } from './store-index.ts';

/**
 * Hashes of all blobs that something in the store names. A step needs none of the weights that its mark says are removed;
 * `goals` are marks to be, by the steps' policy names.
 */
export function liveBlobs(
  { runs, schedules }: Pick<StoreIndex, 'runs' | 'schedules'>,
  goals: ReadonlyMap<string, Pruned> = new Map(),
): Set<string> {
  const live = new Set([...runs, ...schedules].flatMap(({ named }) => named));
  for (const step of runs.flatMap(({ steps }) => steps)) {
    const { manifest } = step.commit;
    const gone = new Set(
      blobsWithout(manifest, goals.get(policyName(step)) ?? step.pruned).map(({ sha256 }) => sha256),
    );
    for (const hash of hashesIn(JSON.stringify(manifest))) if (!gone.has(hash)) live.add(hash);
  }
  return live;
}

type Needed = readonly [Policy | null | undefined, string];

/**
 * Checkpoints in use or about to be, though no manifest refers to them: why each is needed, by its policy's name.
 * `except`: a run whose own production does not count.
 */
export function neededCheckpoints(index: StoreIndex, except: string | null = null): Map<string, string> {
  const needed = new Map<string, string>();
  const sources = [byRuns, bySchedules, byDeployments, inProduction, byServers];
  for (const source of sources)
    for (const [policy, because] of source(index, except)) if (policy) needed.set(placeName(policy), because);
  return needed;
}

function* byRuns({ runs }: StoreIndex): Generator<Needed> {
  for (const { run, file } of runs.filter(({ isUnderWay }) => isUnderWay)) {
    yield [file?.config.parent, `the run ${run} begins with it`];
    yield [judgingPolicy(file?.config), `the run ${run} is judged by it`];
    for (const checkpoint of frozenCheckpoints(file?.config)) yield [checkpoint, `it plays a role of the run ${run}`];
  }
}

function* bySchedules({ schedules }: StoreIndex): Generator<Needed> {
  for (const { name, file, firings } of schedules) {
    const newest = newestOf(firings);
    // Later firings start from the final checkpoint of the last run that succeeded.
    if (newest === null) yield [file?.from, `the schedule ${name} begins with it`];
    yield [judgingPolicy(file?.config), `the runs of the schedule ${name} are judged by it`];
    for (const checkpoint of frozenCheckpoints(file?.config))
      yield [checkpoint, `it plays a role of the schedule ${name}`];
    yield [newest, `the next run of the schedule ${name} begins with it`];
    const last = firings.at(-1);
    if (last?.checkpoint === null) yield [last.parent, `a run of the schedule ${name} begins with it`];
  }
}

function* byDeployments({ deployments }: StoreIndex): Generator<Needed> {
  for (const { checkpoint, target } of deployments) yield [checkpoint, `it is being deployed to ${target}`];
}

/** The current one of each run, after the one that it could go back to; without one, that which answered last. */
function* inProduction({ production }: StoreIndex, except: string | null): Generator<Needed> {
  for (const { run, inEffect, answering } of production.filter((each) => each.run !== except)) {
    yield [inEffect.at(-2)?.checkpoint, `temper production back ${run} returns to it`];
    yield [inEffect.at(-1)?.checkpoint, `it is ${run}@production`];
    yield [answering, `it answered last in the recordings of ${run}`];
  }
}

function* byServers({ servers }: StoreIndex): Generator<Needed> {
  for (const { policies, by } of servers)
    for (const policy of policies) yield [parsePolicyName(policy), `${by} serves it, or was killed a few minutes ago`];
}

/** A checkpoint is kept whole, whichever of its policies is used. */
const placeName = ({ run, branch, step }: Policy): string => policyName({ run, branch, step });

interface NamingConfig {
  readonly judge?: string | null | undefined;
  readonly roles?: Readonly<Record<string, { kind: string; checkpoint?: Checkpoint | undefined }>> | undefined;
}

/** Checkpoints that play roles of an agent, and are not trained. */
function frozenCheckpoints(config: NamingConfig | undefined): Policy[] {
  return Object.values(config?.roles ?? {}).flatMap(({ checkpoint }) => checkpoint ?? []);
}

/** Null unless a checkpoint of this store judges. */
function judgingPolicy(config: NamingConfig | undefined): Policy | null {
  return parsePolicyName(config?.judge?.replace(/^engine\//, '') ?? '');
}

/** Adapters that runs, and schedules' future runs, are compared with: the reason for each, by its hash. */
export function comparedAdapters({ runs, schedules }: StoreIndex): Map<string, string> {
  const compared = new Map<string, string>();
  for (const { name, file } of schedules)
    for (const { sha256 } of referencesOf(file?.config ?? null))
      compared.set(sha256, `runs of the schedule ${name} are compared with it`);
  for (const { run, file, steps } of runs) {
    // A run names one in its configuration; of a script's own loop each step names its own.
    const naming = file?.loop === undefined ? [file?.config ?? null] : steps.map(({ commit }) => commit.manifest);
    for (const { sha256 } of naming.flatMap(referencesOf)) compared.set(sha256, `the run ${run} is compared with it`);
  }
  return compared;
}

export interface Twin {
  readonly run: string;
  /** Last step whose weights both have; null: it has no checkpoint yet. */
  readonly after: number | null;
}

/**
 * Runs in progress that may make this run's next checkpoints, too: those whose newest one is one of this run's, or none. They
 * find a blob in its place, and commit a manifest that names it. One that only began with the same bytes, as those of one
 * seed do, makes others.
 */
export function findTwins({ runs }: StoreIndex, run: string): Twin[] {
  const own = runs.filter((each) => each.run === run).flatMap(({ steps }) => steps);
  const known = new Set(own.flatMap(({ commit }) => adapterHashes(commit)));
  const isShared = ({ commit }: IndexedRun['steps'][number]) => adapterHashes(commit).some((hash) => known.has(hash));
  return runs
    .filter((each) => each.run !== run && each.isUnderWay)
    .flatMap((other): Twin[] => {
      const branch = Math.max(...other.steps.map((step) => step.branch));
      const newest = other.steps.findLast((step) => step.branch === branch);
      if (newest === undefined) return [{ run: other.run, after: null }];
      const shared = other.steps.filter(isShared);
      if (shared.length === 0 || !(isShared(newest) || hasBareBranch(other))) return [];
      return [{ run: other.run, after: Math.max(...shared.map(({ step }) => step)) }];
    });
}

function adapterHashes({ manifest }: Commit): string[] {
  return policiesOf(manifest).map(([, { adapter }]) => adapter.sha256);
}

/** Whether a branch was begun that has no step yet. */
export function hasBareBranch({ branches, steps }: Pick<IndexedRun, 'branches' | 'steps'>): boolean {
  return branches.some((branch) => steps.every((step) => step.branch !== branch));
}
