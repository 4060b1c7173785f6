/** Promotes checkpoints, and lists what was promoted. */
import { userInfo } from 'node:os';
import type { Checkpoint } from '../core/contract/contract.ts';
import { badConfig } from '../core/contract/failures.ts';
import { requireCheckpointName } from '../core/names/policy-name.ts';
import { nameCheckpoint, nameCheckpoints } from '../store/records/runs/find-checkpoint.ts';
import { findTrainedPolicy } from '../store/records/runs/find-policy.ts';
import {
  findBefore,
  findPromoted,
  promotionsInEffect,
  readPromotions,
  recordPromotion,
  type NewPromotion,
  type Promotion,
} from '../store/records/runs/promotions.ts';
import { readEval, requireRun } from '../store/records/runs/run-reader.ts';
import type { Store } from '../store/store.ts';
import type { Place } from './operation.ts';

interface Author {
  readonly by: string | null;
  readonly reason: string | null;
}

interface Promoting extends Author {
  readonly checkpoint: string;
  readonly to: string | null;
}

export async function promoteCheckpoint(place: Place, input: Promoting) {
  const store = await place.store();
  const { run, checkpoint } = await findPromoting(store, input);
  const current = await findPromoted(store, run);
  if (current?.checkpoint.manifestSha256 !== checkpoint.manifestSha256)
    return record(store, run, { ...(await describe(store, checkpoint, input)), kind: 'promoted' });
  const before = await nameCheckpoint(store, checkpoint);
  return { run, created: false, ...toRow(current, before), before };
}

/** The run whose production it becomes, and the checkpoint. */
async function findPromoting(store: Store, { checkpoint: text, to }: Promoting) {
  const name = requireCheckpointName(text);
  const run = to ?? name.run;
  const { file } = await requireRun(store, run);
  const { checkpoint, manifest } = await findTrainedPolicy(store, name);
  if (manifest.baseModel !== file.config.baseModel)
    throw badConfig(
      `${run}@production must stay on the base model ${file.config.baseModel}, got ${text} of ${manifest.baseModel}; promote a checkpoint of the same base model`,
    );
  return { run, checkpoint };
}

export async function goBack(place: Place, { run, ...author }: Author & { run: string }) {
  const store = await place.store();
  const checkpoint = await findBefore(store, run);
  return record(store, run, { ...(await describe(store, checkpoint, author)), kind: 'back' });
}

export async function sayPromoted(place: Place, input: Promoting): Promise<string> {
  const store = await place.store();
  const { run, checkpoint } = await findPromoting(store, input);
  return sayServed(store, run, checkpoint);
}

export async function sayBack(place: Place, run: string): Promise<string> {
  const store = await place.store();
  return sayServed(store, run, await findBefore(store, run));
}

async function sayServed(store: Store, run: string, checkpoint: Checkpoint): Promise<string> {
  const before = await findPromoted(store, run);
  const was = before === null ? 'nothing' : await nameCheckpoint(store, before.checkpoint);
  return `${await nameCheckpoint(store, checkpoint)} becomes ${run}@production, which is ${was} now. Servers that follow it load it within seconds.`;
}

export async function listPromotions(place: Place, run: string) {
  const store = await place.store();
  await requireRun(store, run);
  const rows = await readPromotions(store, run);
  const named = await nameCheckpoints(
    store,
    rows.map(({ checkpoint }) => checkpoint),
  );
  const current = promotionsInEffect(rows).at(-1);
  return rows.map((row, index) => ({ ...toRow(row, named[index]!), isProduction: row === current }));
}

async function describe(
  store: Store,
  checkpoint: Checkpoint,
  { by, reason }: Author,
): Promise<Omit<NewPromotion, 'kind'>> {
  const { reward = null, attempts = 0, scenarios = attempts } = (await readEval(store, checkpoint)) ?? {};
  const evaluation = reward === null ? null : { reward, scenarios };
  return { checkpoint, by: by ?? userName(), reason, evaluation, comparison: null, key: null };
}

async function record(store: Store, run: string, row: NewPromotion) {
  const before = await findPromoted(store, run);
  const { row: recorded } = await recordPromotion(store, run, row);
  const named = await nameCheckpoint(store, recorded.checkpoint);
  const was = before && (await nameCheckpoint(store, before.checkpoint));
  return { run, created: true, ...toRow(recorded, named), before: was };
}

function toRow({ checkpoint, schema: _schema, key: _key, ...row }: Promotion, named: string) {
  return { ...row, checkpoint: named, adapterSha256: checkpoint.adapterSha256 };
}

/** Null where the system has no name for it, as in some containers. */
function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}
