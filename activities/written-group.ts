/** The two files of a group: what was played, and what was judged of it. */
import { TemperError } from '../core/failures.ts';
import { decodeJson, encodeJson } from '../store/bytes/json.ts';
import { judgedKey, rolloutsKey, type GroupPlace } from '../store/layout.ts';
import { hashBytes } from '../store/bytes/sha256.ts';
import type { Store } from '../store/store.ts';
import { decodeRollouts, type Judged, type Rollouts } from '../store/records/trajectories.ts';

export interface Written {
  rollouts: Rollouts;
  sha256: string;
}

export interface WrittenVerdict {
  judged: Judged;
  judgedSha256: string;
}

/** Throws StoreCorrupt where the group's rollouts are missing. */
export async function readRollouts(store: Store, place: GroupPlace): Promise<Written> {
  return readWritten(await requireFile(store, rolloutsKey(place)), rolloutsKey(place));
}

/** Throws StoreCorrupt where the verdict on the group is missing. */
export async function readJudged(store: Store, place: GroupPlace): Promise<WrittenVerdict> {
  return readVerdict(await requireFile(store, judgedKey(place)), place);
}

async function requireFile(store: Store, key: string): Promise<Uint8Array> {
  const bytes = await store.read(key);
  if (bytes !== null) return bytes;
  throw new TemperError('StoreCorrupt', `${key} is missing; restore it from a copy of the run`);
}

export async function readWritten(bytes: Uint8Array, key: string): Promise<Written> {
  return { rollouts: await decodeRollouts(bytes, key), sha256: hashBytes(bytes) };
}

/** Whoever comes second takes the winner's. */
export async function publishVerdict(store: Store, place: GroupPlace, verdict: Judged): Promise<WrittenVerdict> {
  const { bytes } = await store.publish(judgedKey(place), encodeJson(verdict));
  return readVerdict(bytes, place);
}

export function readVerdict(bytes: Uint8Array, place: GroupPlace): WrittenVerdict {
  return { judged: decodeJson(bytes, judgedKey(place)) as Judged, judgedSha256: hashBytes(bytes) };
}
