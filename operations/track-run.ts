/** Tells targets of a run: by the workers that play it, or here. */
import { badConfig, WorkFailed } from '../core/contract/failures.ts';
import { runWorkflowId, trackWorkflowId } from '../core/names/queues.ts';
import { listDeliveries } from '../outbound/list-deliveries.ts';
import { SnapshotReader, type RunSnapshot } from '../outbound/run-snapshot.ts';
import type { Target } from '../outbound/target.ts';
import { runOutcomeOf, deliverNext } from '../outbound/deliver-run.ts';
import { readCursor } from '../store/records/production/outbound-cursor.ts';
import { isEnded, requireRunFile } from '../store/records/runs/run-reader.ts';
import { loadConfig, type TemperConfig } from '../workers/config/config.ts';
import { settingsOfTarget } from '../workers/config/targets.ts';
import { isWorkflowRunning, type TemporalClient } from '../workers/connection/connection.ts';
import { openTarget } from '../workers/tracking/open-target.ts';
import { startDelivery } from '../workers/tracking/tracking.ts';
import type { Place } from './operation.ts';
import type { Tracked } from './results.ts';
import { tryServer } from './server.ts';

const ANSWER_WITHIN_MS = 5000;

interface Tracking {
  readonly run: string;
  readonly to: readonly string[];
  readonly backfill: boolean;
}

export async function trackRun(place: Place, tracking: Tracking): Promise<Tracked> {
  const { run, to } = tracking;
  const store = await place.store();
  await requireRunFile(store, run);
  const config = await loadConfig(place.project, place.env);
  const opening = { store, project: place.project, env: place.env, fetch: globalThis.fetch };
  const targets = to.map((name) => openTarget(settingsOfTarget(config, name), opening));
  const server = targets.length === 0 ? null : await tryServer(place, ANSWER_WITHIN_MS);
  const byWorkers: string[] = [];
  try {
    for (const target of targets) {
      if (server !== null && (await tellByWorkers(place, { config, server }, tracking, target)))
        byWorkers.push(target.name);
      else await tellHere(place, tracking, target);
    }
  } finally {
    await server?.close();
  }
  return { run, byWorkers, trackers: await listDeliveries(store, run) };
}

/** A target of a run that continues, or one that an ended run is being delivered to; false for others. */
async function tellByWorkers(
  place: Place,
  { config, server: { client } }: { readonly config: TemperConfig; readonly server: TemporalClient },
  { run, backfill }: Tracking,
  { name }: Target,
): Promise<boolean> {
  const storeId = await (await place.store()).id();
  const isRunning = await isWorkflowRunning(client, runWorkflowId(storeId, run));
  if (!isRunning && !(await isWorkflowRunning(client, trackWorkflowId(storeId, run, name)))) return false;
  const from = backfill ? 'start' : 'now';
  await startDelivery(client, { storeId, workflows: config.queues.workflows }, { run, target: name, from });
  return true;
}

/** An ended run, or one whose server is away. */
async function tellHere(place: Place, { run, backfill }: Tracking, target: Target): Promise<void> {
  const { signal } = place;
  const store = await place.store();
  const known = await readCursor(store, run, target.name);
  if (known === null && !backfill)
    throw badConfig(`${run} has ended, and ${target.name} has nothing of it; pass --backfill to send it all steps`);
  const snapshot = await new SnapshotReader(store, run).read();
  if (snapshot === null) throw badConfig(`${run} has taken no step yet; start it with temper train`);
  const outcome = endOf(snapshot);
  const scope = { store, signal, checkFresh: () => undefined };
  try {
    while (await deliverNext(target, snapshot, { outcome, from: 'start' }, scope)) signal.throwIfAborted();
  } catch (cause) {
    signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new WorkFailed(`${target.name} did not get all of ${run}: ${reason}; run this command again`, { cause });
  }
}

/** A script's run, and one that is started again, continues: its end is delivered then. */
function endOf(snapshot: RunSnapshot): ReturnType<typeof runOutcomeOf> | null {
  return isEnded(snapshot.state) ? runOutcomeOf(snapshot) : null;
}
