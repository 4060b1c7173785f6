/**
 * Copies a run to another store: blobs first, manifests after what they name, `run.json` last. An interrupted copy is
 * no run, or a run that stopped earlier; copying again continues it. Valid objects in the target are kept.
 */
import pLimit from 'p-limit';

import type { BlobRef, RunState } from '../../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import * as layout from '../../layout.ts';
import { refuseDeleted } from '../runs/deletions.ts';
import type { Commit } from '../runs/manifest.ts';
import { blobsWith, isPruned, markPruned, readPruned, type Pruned } from '../runs/pruned.ts';
import { isEnded, readState } from '../runs/run-reader.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import type { Store } from '../../store.ts';
import { decodeRollouts } from '../groups/trajectories.ts';
import { compareRuns, isBrokenJson, isEqual } from './compare.ts';
import { namedHashes, readContents, requireWhole, type RunContents, type StepContents } from './contents.ts';

export interface CopyOptions {
  /** Reads what is in the target too, and repairs what is broken; else a blob of the right length is taken for the right one. */
  isThorough: boolean;
  /** Brings back what was pruned in the target. */
  withPruned: boolean;
  signal: AbortSignal;
  onStep: (done: number, of: number) => void;
}

export interface Copied {
  steps: number;
  copied: number;
  copiedBytes: number;
  /** Was there before. */
  present: number;
  /** Keys of what was broken in the target. */
  repaired: string[];
  /** Steps that stay pruned. */
  pruned: number;
}

interface Copy {
  from: Store;
  to: Store;
  options: CopyOptions;
  result: Copied;
  hashes: ReadonlyMap<string, string>;
  broken: ReadonlySet<string>;
  seen: Set<string>;
}

/** Small objects at once; of large blobs one at a time is in memory. */
const AT_ONCE = 8;
const LARGE_BYTES = 32 * 1024 * 1024;

export async function copyRun(from: Store, to: Store, run: string, options: CopyOptions): Promise<Copied> {
  if (from.uri === to.uri)
    throw badConfig(`a run must be copied to a different store than its own, got ${to.uri} twice; name another`);
  await refuseDeleted(to, run);
  const contents = await readContents(from, run);
  requireWhole(from, contents);
  await to.checkWritable();
  const broken = await compareRuns(from, to, run, contents);
  const result: Copied = { steps: 0, copied: 0, copiedBytes: 0, present: 0, repaired: [], pruned: 0 };
  const copy: Copy = { from, to, options, result, hashes: namedHashes(contents), broken, seen: new Set() };
  for (const blob of contents.blobs) await copyBlob(copy, blob, null);
  await copyAll(copy, contents.others);
  await copySteps(copy, contents);
  await copyObject(copy, layout.runKey(run));
  await copyDisplay(copy, run, contents);
  return result;
}

async function copySteps(copy: Copy, { branches }: RunContents): Promise<void> {
  const of = branches.reduce((sum, { steps }) => sum + steps.length, 0);
  for (const { others, steps } of branches) {
    await copyAll(copy, others);
    for (const step of steps) {
      copy.options.signal.throwIfAborted();
      await copyStep(copy, step);
      copy.result.steps += 1;
      copy.options.onStep(copy.result.steps, of);
    }
  }
}

async function copyStep(copy: Copy, step: StepContents): Promise<void> {
  await copyWeights(copy, step);
  await copyAll(copy, step.keys);
  if (step.commit !== null) await copyObject(copy, layout.manifestKey(step));
}

async function copyWeights(copy: Copy, step: StepContents): Promise<void> {
  const small = pLimit(AT_ONCE);
  const fits = step.blobs.filter(({ bytes }) => bytes <= LARGE_BYTES);
  const missing = new Set<string>();
  const bring = async (ref: BlobRef) => {
    if (!(await copyBlob(copy, ref, step))) missing.add(ref.sha256);
  };
  await Promise.all(fits.map((ref) => small(bring, ref)));
  for (const ref of step.blobs.filter(({ bytes }) => bytes > LARGE_BYTES)) await bring(ref);
  const before = await readPruned(copy.to, step);
  const pruned = step.commit !== null && missing.size > 0 && whatIsMissing(step.commit, missing);
  if (pruned !== false) copy.result.pruned += 1;
  if (pruned !== before) await markPruned(copy.to, step, pruned);
}

function whatIsMissing({ manifest }: Commit, missing: ReadonlySet<string>): Pruned {
  return blobsWith(manifest, 'optimizer').some(({ sha256 }) => missing.has(sha256)) || 'optimizer';
}

/** False: it was pruned, and stays so. */
async function copyBlob(copy: Copy, ref: BlobRef, step: StepContents | null): Promise<boolean> {
  const { from, to, options, result, seen } = copy;
  if (seen.has(ref.sha256)) return true;
  const found = await findBlob(to, ref, options.isThorough);
  if (found === 'right') {
    seen.add(ref.sha256);
    result.present += 1;
    return true;
  }
  if (step?.commit) {
    if (!options.withPruned && (await isPruned(to, step, step.commit, ref))) return false;
    if (await isPruned(from, step, step.commit, ref)) return false;
  }
  const bytes = await from.getBlob(ref);
  if (found === 'broken') {
    await to.removeBlob(ref);
    result.repaired.push(ref.key);
  }
  await to.putBlob(bytes);
  seen.add(ref.sha256);
  count(copy, bytes);
  return true;
}

async function findBlob(store: Store, ref: BlobRef, isThorough: boolean): Promise<'right' | 'broken' | 'missing'> {
  const bytes = await store.blobBytes(ref);
  if (bytes === null) return 'missing';
  if (bytes !== ref.bytes) return 'broken';
  if (!isThorough) return 'right';
  try {
    await store.getBlob(ref);
    return 'right';
  } catch (error) {
    if (error instanceof TemperError && error.type === 'StoreCorrupt') return 'broken';
    throw error;
  }
}

async function copyAll(copy: Copy, keys: readonly string[]): Promise<void> {
  const limit = pLimit(AT_ONCE);
  await Promise.all(keys.map((key) => limit(() => copyObject(copy, key))));
}

/** Write-once objects: the same bytes on both sides, or one of them is broken. */
async function copyObject(copy: Copy, key: string): Promise<void> {
  const { from, to, hashes, result } = copy;
  const there = await to.read(key);
  const wanted = hashes.get(key) ?? null;
  if (there !== null && wanted !== null && hashBytes(there) === wanted) return void (result.present += 1);
  const bytes = await from.read(key);
  // Listed, and gone since: nothing that a commit names ever goes.
  if (bytes === null) return;
  if (wanted !== null && hashBytes(bytes) !== wanted) throw brokenSource(from, key);
  if (there === null) {
    await to.publish(key, bytes);
    return count(copy, bytes);
  }
  if (isEqual(there, bytes)) return void (result.present += 1);
  if (isFreelyWritten(key)) return void (result.present += 1);
  if (!(await isBroken(copy, key, there))) throw otherObject(copy, key);
  await to.replace(key, bytes);
  result.repaired.push(key);
  count(copy, bytes);
}

/** Outside every hash: each side records its own times, and what its version writes for display. */
function isFreelyWritten(key: string): boolean {
  return FREELY_WRITTEN.some((end) => key.endsWith(end));
}
const FREELY_WRITTEN = ['.times.json', '/scenarios.jsonl', '/vocabulary.json', '/tokens.safetensors'];

/** Checks against the hash in both sides' manifests; unreadable objects are broken, too. */
async function isBroken({ hashes, broken }: Copy, key: string, there: Uint8Array): Promise<boolean> {
  if (hashes.has(key) || broken.has(key)) return true;
  if (key.endsWith('.json')) return isBrokenJson(there, key);
  if (!key.endsWith('.gz')) return false;
  return decodeRollouts(there, key).then(
    () => false,
    () => true,
  );
}

/** Copies display files; never replaces newer ones in the target. */
async function copyDisplay({ from, to }: Copy, run: string, { state, curve }: RunContents): Promise<void> {
  if (state === null) return;
  const there = await readState(to, run).catch(() => null);
  if (there !== null && progress(there) > progress(state.value)) return;
  for (const key of curve) {
    const bytes = await from.read(key);
    if (bytes !== null) await to.replace(key, bytes);
  }
  await to.replace(layout.stateKey(run), state.bytes);
}

/** Comparable: branch before step, an end after what came before it. */
function progress(state: RunState): number {
  return state.branch * 2 ** 32 + state.step * 2 + Number(isEnded(state));
}

function count({ result }: Copy, bytes: Uint8Array): void {
  result.copied += 1;
  result.copiedBytes += bytes.length;
}

function brokenSource(from: Store, key: string): TemperError {
  return new TemperError(
    'StoreCorrupt',
    `${key} in ${from.uri} does not have the hash that its manifest names; restore it there from another copy`,
  );
}

function otherObject({ from, to }: Copy, key: string): TemperError {
  return new TemperError(
    'StepConflict',
    `${key} has other contents in ${to.uri} than in ${from.uri}; run temper verify on both to find the broken copy, delete it there, and copy again`,
  );
}
