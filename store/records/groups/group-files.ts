/** The two files of a group: what was played, and what was judged of it. */
import { TemperError } from '../../../core/contract/failures.ts';
import { decodeJson, encodeJson } from '../../bytes/json.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import { groupsPrefix, judgedKey, type GroupPlace, type StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNames } from '../children.ts';
import { JudgedSchema, parseStored } from '../file-schemas.ts';
import { decodeRollouts, type Judged, type Rollouts } from './trajectories.ts';

export interface StoredRollouts {
  rollouts: Rollouts;
  sha256: string;
}

export interface StoredVerdict {
  judged: Judged;
  sha256: string;
}

/** Numbers of a step's groups that were played, in plan order, those that are not trained included. */
export async function listGroups(store: Store, place: StepPlace): Promise<number[]> {
  const names = await childNames(store, groupsPrefix(place));
  const played = names.filter((name) => name.endsWith('.rollouts.jsonl.gz'));
  return played.map((name) => Number.parseInt(name, 10)).toSorted((a, b) => a - b);
}

/** Throws StoreCorrupt if the file has another hash than it was written with, if that is known. */
export async function readRollouts(store: Store, key: string, written?: string): Promise<StoredRollouts | null> {
  const bytes = await readWritten(store, key, written);
  return bytes && parseRollouts(bytes, key);
}

export async function readVerdict(store: Store, place: GroupPlace, written?: string): Promise<StoredVerdict | null> {
  const bytes = await readWritten(store, judgedKey(place), written);
  return bytes && parseJudged(bytes, judgedKey(place));
}

async function readWritten(store: Store, key: string, written?: string): Promise<Uint8Array | null> {
  const bytes = await store.read(key);
  if (bytes === null || written === undefined || hashBytes(bytes) === written) return bytes;
  const rule = `${key} must have the hash ${written} that it was written with, it has ${hashBytes(bytes)}`;
  throw new TemperError('StoreCorrupt', `${rule}; restore it from a copy of the run`);
}

/** Throws StoreCorrupt if a file that must be there is missing. */
export function requireFile<T>(file: T | null, key: string): T {
  if (file !== null) return file;
  throw new TemperError('StoreCorrupt', `${key} is missing; restore it from a copy of the run`);
}

export async function parseRollouts(bytes: Uint8Array, key: string): Promise<StoredRollouts> {
  return { rollouts: await decodeRollouts(bytes, key), sha256: hashBytes(bytes) };
}

export function parseJudged(bytes: Uint8Array, key: string): StoredVerdict {
  return { judged: parseStored(JudgedSchema, decodeJson(bytes, key), key), sha256: hashBytes(bytes) };
}

/** A second writer gets the first one's verdict. */
export async function publishVerdict(store: Store, place: GroupPlace, verdict: Judged): Promise<StoredVerdict> {
  const { bytes } = await store.publish(judgedKey(place), encodeJson(verdict));
  return parseJudged(bytes, judgedKey(place));
}
