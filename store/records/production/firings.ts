/** Firings of a schedule that train recorded conversations: where they start, whether there are enough, and which they train. */
import type { Checkpoint, ProductionConfig, ProductionSource } from '../../../core/contract/contract.ts';
import { describeTooFew } from '../../../core/rules/production.ts';
import { encodeJson } from '../../bytes/json.ts';
import { chosenKey, waitingKey } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { readAncestors } from './ancestors.ts';
import { ChosenFileSchema, publishStored, readStored, WaitingFileSchema } from '../file-schemas.ts';
import { chooseRecorded, takeRecorded } from './dataset.ts';
import { findPromoted } from '../runs/promotions.ts';
import type { Firing } from './schedules.ts';
import { findServing } from './serving-checkpoint.ts';

/** The promoted checkpoint; without one, that of `--from`, or the one that answered last. */
export async function findProductionStart(
  store: Store,
  { run }: Pick<ProductionSource, 'run'>,
  from: Checkpoint | null,
): Promise<Checkpoint> {
  return (await findPromoted(store, run))?.checkpoint ?? from ?? (await findServing(store, run));
}

/** Null if there are enough. `run`: the run that would train them. */
export async function findTooFew(
  store: Store,
  source: ProductionSource,
  { run, parent }: { run: string; parent: Checkpoint },
): Promise<string | null> {
  const ancestors = await readAncestors(store, parent, source.maxPolicyAge);
  const { conversations, leftOut } = await chooseRecorded(store, source.run, { run, ancestors });
  return conversations.length >= source.atLeast
    ? null
    : describeTooFew(source, { found: conversations.length, leftOut });
}

/** Conversations of a firing's run, chosen once; null if other runs have taken all of them meanwhile. */
export async function chooseForFiring(
  store: Store,
  schedule: string,
  { number, run, parent }: Pick<Firing, 'number' | 'run' | 'parent'>,
  source: ProductionSource,
): Promise<ProductionConfig | null> {
  const key = chosenKey(schedule, number);
  const recorded = await readStored(store, key, ChosenFileSchema);
  if (recorded !== null) return recorded.production;
  const ancestors = parent === null ? new Map() : await readAncestors(store, parent, source.maxPolicyAge);
  const production = await takeRecorded(store, source.run, { run, ancestors });
  if (production === null) return null;
  return (await publishStored(store, key, ChosenFileSchema, { schema: 1, production })).production;
}

/** For display: why the last firing trained nothing. */
export async function recordWaiting(store: Store, schedule: string, reason: string): Promise<void> {
  await store.replace(waitingKey(schedule), encodeJson({ schema: 1, reason, at: new Date().toISOString() }));
}

export async function readWaiting(store: Store, schedule: string): Promise<{ reason: string; at: string } | null> {
  return readStored(store, waitingKey(schedule), WaitingFileSchema);
}
