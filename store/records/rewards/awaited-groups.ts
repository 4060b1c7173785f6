/** Groups of a run that wait for rewards from outside, read from the store alone. */
import pLimit from 'p-limit';

import type { Branch, ExternalConfig } from '../../../core/contract/contract.ts';
import { branchOfStep } from '../../../core/names/lineage.ts';
import { hasWindow } from '../../../core/plan/window.ts';
import { groupTimesKey, rolloutsKey, runKey, stepsPrefix, type GroupPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNumbers, GROUPS_AT_ONCE } from '../children.ts';
import { readStored, RunFileSchema, TimesFileSchema } from '../file-schemas.ts';
import { readGiven, type LedgerRow } from './given-rewards.ts';
import { missingAttempts } from './given-verdict.ts';
import { listGroups, readRollouts } from '../groups/group-files.ts';
import { readLineage } from '../runs/lineage.ts';
import { readCommit } from '../runs/run-reader.ts';
import { readStepVerdict } from '../groups/step-verdict.ts';
import type { AttemptRecord, Rollouts } from '../groups/trajectories.ts';

export interface AwaitedGroup {
  readonly place: GroupPlace;
  readonly scenarioId: string;
  /** Milliseconds since 1970; null if the store does not tell. */
  readonly playedAt: number | null;
  readonly rollouts: Rollouts;
  /** All of its attempts, failed ones included. */
  readonly attempts: readonly AttemptRecord[];
  /** Everything that it was given so far. */
  readonly rows: readonly LedgerRow[];
  /** Those without a reward; none if it is complete and only has to be decided. */
  readonly missing: readonly AttemptRecord[];
}

/** Groups that are not decided, oldest first: of the steps after the last one that is, or of the open window. */
export async function listAwaited(store: Store, run: string): Promise<AwaitedGroup[]> {
  return (await listOpenSteps(store, run)).filter(({ rows }) => !isClosed(rows));
}

/** Groups of the steps after the last one that is decided, or of the open window, oldest first. */
export async function listOpenSteps(store: Store, run: string): Promise<AwaitedGroup[]> {
  const config = (await readStored(store, runKey(run), RunFileSchema))?.config;
  const oldest = config !== undefined && hasWindow(config) ? config.maxRewardStaleness : 0;
  const lineage = await readLineage(store, run);
  const limit = pLimit(GROUPS_AT_ONCE);
  const found: AwaitedGroup[] = [];
  let age = 0;
  for (let step = await findNewestStep(store, run, lineage); step > 0; step--) {
    const place = { run, branch: branchOfStep(lineage, step), step };
    if (oldest === 0 && (await readStepVerdict(store, place)) !== null) break;
    if ((await readCommit(store, place)) !== null) age += 1;
    if (age > oldest) break;
    const groups = await listGroups(store, place);
    const read = groups.map((group) => limit(() => readAwaited(store, { ...place, group }, config?.external ?? {})));
    found.push(...(await Promise.all(read)).filter((group) => group !== null));
  }
  return found.toSorted((one, other) => comparePlaces(one.place, other.place));
}

async function findNewestStep(store: Store, run: string, lineage: readonly Branch[]): Promise<number> {
  const { branch, fromStep } = lineage.at(-1) ?? { branch: 0, fromStep: 0 };
  return Math.max(fromStep, ...(await childNumbers(store, stepsPrefix(run, branch))));
}

/** Null if the group was not played. */
async function readAwaited(store: Store, place: GroupPlace, external: ExternalConfig): Promise<AwaitedGroup | null> {
  const rows = await readGiven(store, place);
  const played = await readRollouts(store, rolloutsKey(place));
  if (played === null) return null;
  const { rollouts } = played;
  const { attempts, header } = rollouts;
  const missing = missingAttempts(rollouts, rows, external);
  const playedAt = await readPlayedAt(store, place);
  return { place, scenarioId: header.scenarioId ?? '', playedAt, rollouts, attempts, rows, missing };
}

export function isClosed(rows: readonly LedgerRow[]): boolean {
  return rows.some(({ kind }) => kind === 'closed');
}

/** When a group was played, which a sidecar tells. */
export async function readPlayedAt(store: Store, place: GroupPlace): Promise<number | null> {
  return (await readStored(store, groupTimesKey(place), TimesFileSchema))?.endedAt ?? null;
}

function comparePlaces(one: GroupPlace, other: GroupPlace): number {
  return one.step - other.step || one.group - other.group;
}
