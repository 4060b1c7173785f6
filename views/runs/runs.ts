/** All runs of a store, a row each. */
import { setTimeout } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { RunState } from '../../core/contract/contract.ts';
import { sumUsd } from '../../core/rules/costs.ts';
import { isUnreadable, type TemperError } from '../../core/contract/failures.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { RUNS_PREFIX } from '../../store/layout.ts';
import { childNames } from '../../store/records/children.ts';
import { isEnded } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { RunRow } from '../api/run-views.ts';
import { findHeldOut } from '../charts/held-out.ts';
import type { RunContext } from '../context/context.ts';
import { findStall } from './advisories.ts';
import { knownDigest, makeDigest, type RunDigest } from './digest.ts';
import { readProgressTime, type ProgressTime } from './progress-time.ts';
import { runCacheOf, type RunHead } from './run-cache.ts';

const READ_AT_ONCE = 32;
/** Curves that have to be read first take longer with hundreds of runs: the rows come without them, and are complete later. */
const DIGESTS_WITHIN_MS = 300;

interface Listing {
  /** The other runs are as they were; absent: any may have changed. */
  readonly changed?: ReadonlySet<string> | undefined;
  readonly digestsWithinMs?: number;
  /** Is told of each run that is left out. */
  readonly onUnreadable?: (error: TemperError) => void;
}

/** Runs with files that cannot be read are left out: they must not hide the others. */
export async function listRunRows(
  context: RunContext,
  { changed, digestsWithinMs = DIGESTS_WITHIN_MS, onUnreadable }: Listing = {},
): Promise<RunRow[]> {
  const leaveOut = leavingOut(onUnreadable);
  const heads = await readHeads(context, leaveOut, changed);
  const digests = await digestsWithin(context, heads, leaveOut, digestsWithinMs);
  const limit = pLimit(READ_AT_ONCE);
  const rows = await Promise.all(heads.map((head) => limit(() => rowOf(context, head, digests.get(head.run) ?? null))));
  return rows.toSorted(compareRows);
}

/** Heads of all runs that can be read. */
function readHeads({ store }: RunContext, leaveOut: LeaveOut, changed?: ReadonlySet<string>): Promise<RunHead[]> {
  const cache = runCacheOf(store);
  const read = (name: string) => (changed?.has(name) === false ? cache.knownHead(name) : cache.readHead(name));
  return ofAllRuns(store, read, leaveOut);
}

/** Runs that continue a checkpoint of `run`. Each view of a run asks, so that the other runs' files are read once. */
export async function readForks({ store }: RunContext, run: string): Promise<RunHead[]> {
  const cache = runCacheOf(store);
  return ofAllRuns(store, async (name) => {
    const head = await cache.knownHead(name);
    return head?.file.config.parent?.run === run ? cache.readHead(name) : null;
  });
}

async function ofAllRuns(
  store: Store,
  read: (name: string) => Promise<RunHead | null>,
  leaveOut = leavingOut(),
): Promise<RunHead[]> {
  const limit = pLimit(READ_AT_ONCE);
  const names = await childNames(store, RUNS_PREFIX);
  const heads = await Promise.all(names.map((name) => limit(() => read(name).catch(leaveOut))));
  return heads.filter((head) => head !== null);
}

export async function viewRunRow(context: RunContext, head: RunHead): Promise<RunRow> {
  return rowOf(context, head, (await knownDigest(context, head)) ?? (await makeDigest(context, head)));
}

/** Digests that are known, or computed in time; the rest is computed for the next time. */
async function digestsWithin(
  context: RunContext,
  heads: readonly RunHead[],
  leaveOut: LeaveOut,
  withinMs: number,
): Promise<Map<string, RunDigest>> {
  const digests = new Map<string, RunDigest>();
  const missing: RunHead[] = [];
  for (const head of heads) {
    const known = await knownDigest(context, head);
    if (known === null) missing.push(head);
    else digests.set(head.run, known);
  }
  if (missing.length === 0) return digests;
  const over = new AbortController();
  const computing = computeAll(context, missing, digests, leaveOut);
  if (withinMs === Infinity) await computing;
  else await Promise.race([computing, setTimeout(withinMs, undefined, { signal: over.signal }).catch(() => undefined)]);
  over.abort();
  return new Map(digests);
}

/** Positions of which a process computes the digest at the moment: a second listing does not begin them again. */
const inProgress = new WeakMap<RunHead['file'], Promise<RunDigest>>();

async function computeAll(
  context: RunContext,
  heads: readonly RunHead[],
  digests: Map<string, RunDigest>,
  leaveOut: LeaveOut,
): Promise<void> {
  for (const head of heads) {
    const making = inProgress.get(head.file) ?? makeDigest(context, head);
    inProgress.set(head.file, making);
    const digest = await making.catch(leaveOut).finally(() => inProgress.delete(head.file));
    if (digest !== null) digests.set(head.run, digest);
  }
}

async function rowOf(context: RunContext, head: RunHead, digest: RunDigest | null): Promise<RunRow> {
  const { file, state, run } = head;
  const { agent, baseModel, parent, steps } = file.config;
  const progress = await readRunProgress(context, head, digest);
  const { sparkline, usual, advisories } = digest ?? NOT_DIGESTED;
  const stall = findStall(state, usual, progress.atMs, context.now());
  const seen = state ?? { ...NOT_BEGUN, steps };
  return {
    run,
    agent,
    baseModel,
    state: seen.state,
    step: seen.step,
    steps: seen.steps,
    reward: seen.reward,
    heldOut: heldOutOf(state) ?? lossOf(digest),
    sparkline,
    waitingFor: context.waitOf?.(run) ?? seen.waitingFor,
    waitingSince: state === null ? null : waitingSince(state, progress.atMs),
    updatedAt: toIso(progress.atMs),
    wallSeconds: seen.wallSeconds,
    usd: usdOf(state),
    awaited: seen.awaited?.missing ?? 0,
    host: progress.host,
    advisories: advisories + (stall === null ? 0 : 1),
    parent: parent ? policyName(parent) : null,
  };
}

function heldOutOf(state: RunState | null): RunRow['heldOut'] {
  const found = state === null ? null : findHeldOut(state);
  const newest = found?.after ?? found?.before ?? null;
  if (found === null || newest === null) return null;
  const before = found.after === null ? null : (found.before?.value ?? null);
  return { label: found.label, value: newest.value, before, step: newest.evaluation.step };
}

/** Of a run that trains chats alone. */
function lossOf(digest: RunDigest | null): RunRow['heldOut'] {
  if (!digest?.loss) return null;
  const { before, after, step } = digest.loss;
  return { label: 'loss', value: after, before, step };
}

const NOT_DIGESTED: Pick<RunDigest, 'sparkline' | 'usual' | 'advisories'> = { sparkline: [], usual: {}, advisories: 0 };

const NOT_BEGUN = {
  state: 'starting',
  step: 0,
  reward: null,
  waitingFor: null,
  wallSeconds: 0,
  awaited: null,
} as const;

/** An ended run writes nothing more; the others may be within a step. */
async function readRunProgress(
  { store }: Pick<RunContext, 'store'>,
  { run, state }: RunHead,
  digest: RunDigest | null,
): Promise<ProgressTime> {
  if (state === null || (isEnded(state) && digest === null)) return { atMs: null, host: null };
  if (isEnded(state) && digest !== null) return { atMs: digest.updatedAtMs, host: digest.host };
  return readProgressTime(store, run, state);
}

const SINCE = /since (\d{4}-\d\d-\d\dT[\d:.]+Z)/;

/** Null where the run waits for nothing. */
function waitingSince(
  { state, pause, awaited, waitingFor }: Pick<RunState, 'state' | 'pause' | 'awaited' | 'waitingFor'>,
  progressAtMs: number | null,
): string | null {
  if (state === 'paused' && pause !== null) return pause.since;
  if (waitingFor === null) return null;
  const said = SINCE.exec(waitingFor)?.[1] ?? awaited?.since;
  return said ?? toIso(progressAtMs);
}

function toIso(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

/** Null if nothing of the run has a price. */
function usdOf(state: RunState | null): number | null {
  const usd = state?.costs?.usd;
  return usd === undefined || Object.keys(usd).length === 0 ? null : sumUsd(usd);
}

/** Newest first; runs without a time, which have only begun, before all. */
function compareRows(one: RunRow, other: RunRow): number {
  return timeOf(other) - timeOf(one) || one.run.localeCompare(other.run, 'en', { numeric: true });
}

function timeOf({ updatedAt, state }: RunRow): number {
  if (updatedAt !== null) return Date.parse(updatedAt);
  return state === 'starting' || state === 'running' ? Infinity : 0;
}

type LeaveOut = (error: unknown) => null;

function leavingOut(onUnreadable?: (error: TemperError) => void): LeaveOut {
  return (error) => {
    if (!isUnreadable(error)) throw error;
    onUnreadable?.(error);
    return null;
  };
}
