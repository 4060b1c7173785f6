/** A planned schedule on Temporal's own Schedules. */
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type ScheduleClient,
  type ScheduleSpec,
} from '@temporalio/client';
import { rolloutQueue, scheduleId, storeQueue } from '../../core/queues.ts';
import { recordSchedule } from '../../store/records/schedules.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { registerSearchAttributes } from '../../workers/connection/namespace.ts';
import type { retrain, RetrainInput } from '../../workflows/retrain.ts';
import type { ProjectPlace } from '../connections/server.ts';
import type { PlannedSchedule, Timing } from './read-planned-schedule.ts';
import { withSchedules } from './server.ts';

/** A machine that was off leaves out what it missed by more: a run trains for long, and the next time comes anyway. */
export const CATCH_UP_MINUTES = 10;

/** Returns the first time. */
export async function createSchedule(place: ProjectPlace, plan: PlannedSchedule): Promise<Date | null> {
  const { name, config, from, timing, store } = plan;
  const { queues } = await loadConfig(place.project, place.env);
  const storeId = await store.id();
  const input: RetrainInput = {
    schedule: name,
    config,
    from,
    storeId,
    queues: { rollout: rolloutQueue(storeId, config.agent), gpu: storeQueue(storeId, queues.gpu) },
  };
  return withSchedules(place, async (schedules, server) => {
    // A run cannot write attributes that the namespace does not know; who may not register them is told by the doctor.
    await registerSearchAttributes(server).catch(() => undefined);
    await refuseExisting(schedules, storeId, name);
    await recordSchedule(store, name, { config, from });
    const handle = await schedules.create<typeof retrain>({
      scheduleId: scheduleId(storeId, name),
      spec: toSpec(timing),
      action: {
        type: 'startWorkflow',
        workflowType: 'retrain',
        workflowId: scheduleId(storeId, name),
        taskQueue: storeQueue(storeId, queues.workflows),
        args: [input],
        staticSummary: `${name}: retrains ${config.agent} on ${config.baseModel}`,
      },
      policies: {
        overlap: ScheduleOverlapPolicy.SKIP,
        catchupWindow: CATCH_UP_MINUTES * 60_000,
        pauseOnFailure: true,
      },
      memo: { timing: timing.text },
    });
    return (await handle.describe()).info.nextActionTimes[0] ?? null;
  });
}

/** Before its record is replaced. */
async function refuseExisting(schedules: ScheduleClient, storeId: string, name: string): Promise<void> {
  const id = scheduleId(storeId, name);
  try {
    await schedules.getHandle(id).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return;
    throw error;
  }
  throw new ScheduleAlreadyRunning(`${name} exists`, id);
}

/** An interval counts from now, not from 1970: the first firing comes when it is over. */
function toSpec({ everyMs, cron }: Timing): ScheduleSpec {
  if (everyMs === null) return { cronExpressions: [cron] };
  const offset = Math.floor(Date.now() / 1000) * 1000;
  return { intervals: [{ every: everyMs, offset: offset % everyMs }] };
}
