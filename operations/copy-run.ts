import { resolve } from 'node:path';
import { requireWholeRun } from '../core/names/policy-name.ts';
import { openStore } from '../store/bytes/open-store.ts';
import { copyRun, type Copied } from '../store/records/copy/copy-run.ts';
import type { Store } from '../store/store.ts';
import type { Place } from './operation.ts';

interface Copying {
  readonly run: string;
  /** Folder or URI. */
  readonly store: string;
  readonly withPruned: boolean;
}

export async function pushRun(place: Place, copying: Copying) {
  requireWholeRun('push', copying.run);
  const other = await openOther(place, copying.store, false);
  return copy(place, copying, { from: await place.store(), to: other, isThorough: false });
}

/** Only local objects are read back: pull repairs damaged ones. */
export async function pullRun(place: Place, copying: Copying) {
  requireWholeRun('pull', copying.run);
  const other = await openOther(place, copying.store, true);
  return copy(place, copying, { from: other, to: await place.store(), isThorough: true });
}

function openOther({ cwd }: Place, where: string, isForeign: boolean): Promise<Store> {
  return openStore(where.includes('://') ? where : resolve(cwd, where), { isForeign });
}

interface Stores {
  readonly from: Store;
  readonly to: Store;
  readonly isThorough: boolean;
}

async function copy(
  { signal, showProgress }: Place,
  { run, withPruned }: Copying,
  { from, to, isThorough }: Stores,
): Promise<Copied & { run: string; from: string; to: string }> {
  const onStep = (done: number, of: number): void => showProgress?.(`${done} of ${of} steps`);
  const copied = await copyRun(from, to, run, { isThorough, withPruned, signal, onStep });
  return { run, from: from.uri, to: to.uri, ...copied };
}
