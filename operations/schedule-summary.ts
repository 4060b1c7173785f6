/** Schedules as flat objects, from the server and the store. */
import type { ScheduleClient, ScheduleDescription } from '@temporalio/client';
import type { ProductionSource, RunConfig } from '../core/contract/contract.ts';
import { policyName } from '../core/names/policy-name.ts';
import { nameOfScheduleId, scheduleId } from '../core/names/queues.ts';
import { readWaiting } from '../store/records/production/firings.ts';
import { findPromoted } from '../store/records/runs/promotions.ts';
import { readState } from '../store/records/runs/run-reader.ts';
import { newestOf, readFirings, type Firing } from '../store/records/production/schedules.ts';
import type { Store } from '../store/store.ts';
import type { RetrainInput } from '../workflows/retrain.ts';
import type { ScheduleSummary } from '../views/api/schedule-views.ts';
import { findStoreId } from '../store/bytes/store-id.ts';
import { formatTime, plural } from '../core/reports/format.ts';

/** Schedules of this store, by name. */
export async function listSchedules(schedules: ScheduleClient, store: Store): Promise<ScheduleSummary[]> {
  const storeId = await findStoreId(store);
  if (storeId === null) return [];
  const names: string[] = [];
  for await (const { scheduleId: id, action } of schedules.list()) {
    const name = action?.workflowType === 'retrain' ? nameOfScheduleId(storeId, id) : null;
    if (name !== null) names.push(name);
  }
  const described = names
    .toSorted()
    .map(async (name) => summariseSchedule(await schedules.getHandle(scheduleId(storeId, name)).describe(), store));
  return Promise.all(described);
}

export async function summariseSchedule(description: ScheduleDescription, store: Store): Promise<ScheduleSummary> {
  const { info, memo } = description;
  const { schedule, config, from, production } = (description.action.args as [RetrainInput])[0];
  const firings = await readFirings(store, schedule);
  const promoted = production && (await findPromoted(store, production.run));
  const begins = production ? (promoted?.checkpoint ?? from) : (newestOf(firings) ?? from);
  const waiting = production && (await readWaiting(store, schedule));
  return {
    name: schedule,
    agent: config.agent,
    baseModel: config.baseModel,
    timing: String(memo?.['timing']),
    steps: production ? null : config.steps,
    work: describeWork(config, production ?? null),
    waiting: waiting ? `${waiting.reason} (${waiting.at})` : null,
    ...summariseState(description, firings),
    lastRun: await readLastRun(store, firings),
    begins: begins && policyName(begins),
    firings: info.numActionsTaken,
    skipped: info.numActionsSkippedOverlap,
    missed: info.numActionsMissedCatchupWindow,
  };
}

function summariseState(
  { state: { paused, note }, info }: ScheduleDescription,
  firings: readonly Firing[],
): Pick<ScheduleSummary, 'state' | 'reason' | 'nextTimes'> {
  if (paused) return { state: 'paused', reason: note ?? '', nextTimes: [] };
  const nextTimes = info.nextActionTimes.map(formatTime);
  const running = info.runningActions.map(({ workflow }) => workflow.workflowId);
  if (running.length === 0) return { state: 'active', reason: null, nextTimes };
  const isTaken = firings.some(({ firing }) => running.includes(firing));
  return { state: isTaken ? 'running' : 'waiting', reason: isTaken ? null : NO_WORKER, nextTimes };
}

const NO_WORKER = 'no worker with this agent is running; start temper dev --agent FILE or temper worker';

async function readLastRun(store: Store, firings: readonly Firing[]): Promise<ScheduleSummary['lastRun']> {
  const last = firings.at(-1);
  if (last === undefined) return null;
  return { run: last.run, state: (await readState(store, last.run))?.state ?? 'starting' };
}

/** `50 steps each`, or what of the recorded conversations. */
export function describeWork({ steps }: Pick<RunConfig, 'steps'>, production: ProductionSource | null): string {
  if (production === null) return `${plural(steps, 'step')} each`;
  return `on at least ${plural(production.atLeast, 'new conversation')} of ${production.run} with feedback`;
}
