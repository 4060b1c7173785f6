/** Delivers to a target what is new of a run, one delivery at a time, and keeps a cursor of what the target has. */
import { TemperError, type FailureType } from '../core/contract/failures.ts';
import { branchOfStep } from '../core/names/lineage.ts';
import {
  NEW_CURSOR,
  readCursor,
  writeCursor,
  type Cursor,
  type RunOutcome,
} from '../store/records/production/outbound-cursor.ts';
import type { Store } from '../store/store.ts';
import { afterRows, cursorFromNow, onNewBranch, planDelivery, type NextDelivery } from './plan-delivery.ts';
import { readCommitTime, readEvalTime, readFacts, totalsOf, type RunSnapshot } from './run-snapshot.ts';
import type { DeliveryRow, RunFacts, Target, Delivery } from './target.ts';

export interface DeliveryScope {
  readonly store: Store;
  readonly signal: AbortSignal;
  /** Throws if another process may have the work by now. */
  readonly checkFresh: () => void;
}

/** True if there was something to deliver. */
export async function deliverNext(
  target: Target,
  snapshot: RunSnapshot,
  { outcome, from }: { outcome: RunOutcome | null; from: 'start' | 'now' },
  scope: DeliveryScope,
): Promise<boolean> {
  const { store } = scope;
  const { run } = snapshot.file.config;
  const known = await readCursor(store, run, target.name);
  const cursor = known ?? (from === 'now' ? cursorFromNow(snapshot) : NEW_CURSOR);
  const next = planDelivery(cursor, snapshot, outcome, target);
  if (next.kind === 'nothing') return false;
  const keep = async (kept: Cursor, failure: string | null = null): Promise<void> => {
    scope.checkFresh();
    await writeCursor(store, run, target.name, { ...kept, failure });
  };
  scope.checkFresh();
  try {
    await keep(await perform(target, snapshot, { cursor, next, keep }, scope));
  } catch (error) {
    if (error instanceof TemperError && OF_TARGETS.has(error.type))
      await keep((await readCursor(store, run, target.name)) ?? cursor, error.message);
    throw error;
  }
  return true;
}

/** Failures that people look for: their target's, or of its settings. */
const OF_TARGETS: ReadonlySet<FailureType> = new Set(['BadConfig', 'DeploymentFailed', 'TargetUnavailable']);

interface Planned {
  readonly cursor: Cursor;
  readonly next: Exclude<NextDelivery, { kind: 'nothing' }>;
  readonly keep: (cursor: Cursor) => Promise<void>;
}

/** The cursor after it. */
async function perform(
  target: Target,
  snapshot: RunSnapshot,
  { cursor, next, keep }: Planned,
  { store, signal }: DeliveryScope,
): Promise<Cursor> {
  const facts = await readFacts(store, snapshot);
  const delivery = await deliveryOf(store, snapshot, { run: facts, cursor, next }, signal);
  if (next.kind === 'leave branch') {
    if (target.onRollback === 'restart' && cursor.ended === null) await target.end(delivery, 'rolled back');
    return onNewBranch(cursor, snapshot, target);
  }
  if (next.kind === 'begin') {
    const branch = cursor.hasBegun ? cursor.branch : Math.max(cursor.branch, snapshot.branch);
    const memory = await target.begin({ ...delivery, branch });
    return { ...cursor, branch, hasBegun: true, ended: null, memory: { ...cursor.memory, ...memory } };
  }
  if (next.kind === 'end') {
    await target.end(delivery, next.outcome);
    return { ...cursor, ended: next.outcome };
  }
  await keep({ ...cursor, pending: next.pending });
  await target.deliver(delivery, await readRows(store, snapshot, cursor, next.pending, facts));
  return afterRows(cursor, next.pending);
}

interface Position {
  readonly run: RunFacts;
  readonly cursor: Cursor;
  readonly next: NextDelivery;
}

async function deliveryOf(
  store: Store,
  snapshot: RunSnapshot,
  { run, cursor, next }: Position,
  signal: AbortSignal,
): Promise<Delivery> {
  const { branch, rows, memory } = cursor;
  const after = next.kind === 'rows' ? afterRows(cursor, next.pending) : cursor;
  const known = new Set(after.evals);
  const evals = snapshot.evals.filter(({ step }) => known.has(step));
  const last = [...(after.step > 0 ? [`s${after.step}`] : []), ...(evals.length > 0 ? [`e${evals.at(-1)?.step}`] : [])];
  const newest = await readRows(store, snapshot, cursor, last, run);
  return { run, branch, rows, memory, newest, evals, signal };
}

async function readRows(
  store: Store,
  { steps, evals, lineage }: RunSnapshot,
  cursor: Cursor,
  names: readonly string[],
  { run, beganAt }: RunFacts,
): Promise<DeliveryRow[]> {
  const totals = totalsOf(steps);
  const rows: DeliveryRow[] = [];
  for (const [index, name] of names.entries()) {
    const step = Number(name.slice(1));
    const at = steps.findIndex((summary) => summary.step === step);
    const [summary, total] = [steps[at], totals[at]];
    const place = { number: cursor.rows + index, branch: branchOfStep(lineage, step), step };
    // A step that trained nothing has no commit: its time is the sum of the steps before it.
    const stepAt = (): number => beganAt + Math.round((total?.seconds ?? 0) * 1000);
    const inStore = { run, branch: place.branch, step };
    if (name.startsWith('e')) {
      const result = evals.find((each) => each.step === step);
      if (result === undefined) continue;
      const ended = (await readEvalTime(store, inStore)) ?? (await readCommitTime(store, inStore)) ?? stepAt();
      rows.push({ kind: 'evaluation', ...place, at: ended, result });
    } else if (summary !== undefined && total !== undefined) {
      const committed = (await readCommitTime(store, inStore)) ?? stepAt();
      rows.push({ kind: 'step', ...place, at: committed, summary, totals: total });
    }
  }
  return rows;
}

/** Sends a sign of life to a target that takes silence for a crash. */
export async function beat(target: Target, snapshot: RunSnapshot, { store, signal }: DeliveryScope): Promise<void> {
  const cursor = await readCursor(store, snapshot.file.config.run, target.name);
  if (target.beat === undefined || !cursor?.hasBegun || cursor.ended !== null) return;
  const run = await readFacts(store, snapshot);
  await target.beat(await deliveryOf(store, snapshot, { run, cursor, next: { kind: 'nothing' } }, signal));
}

/** How a run that is over ended, by its last word: one that never wrote its end crashed. */
export function runOutcomeOf(snapshot: RunSnapshot | null): RunOutcome {
  const state = snapshot?.state.state;
  if (state === 'completed') return 'finished';
  return state === 'stopped' || state === 'cancelled' || state === 'failed' ? state : 'crashed';
}
