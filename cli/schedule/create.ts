/** Creates a planned schedule with Temporal Schedules. */
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type ScheduleClient,
  type ScheduleSpec,
} from '@temporalio/client';
import { policyName } from '../../core/names/policy-name.ts';
import { rolloutQueue, scheduleId, storeQueue } from '../../core/names/queues.ts';
import { recordSchedule } from '../../store/records/production/schedules.ts';
import { namesOfTargets } from '../../workers/config/targets.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { configuredTarget } from '../../workers/connection/target.ts';
import { registerSearchAttributes } from '../../workers/connection/namespace.ts';
import type { retrain, RetrainInput } from '../../workflows/retrain.ts';
import { trackingOf } from '../../operations/start-run.ts';
import { keepDate, proveChatTemplate } from '../planning/chat-template.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { EXIT } from '../command-line/errors.ts';
import type { ProjectPlace } from '../../operations/operation.ts';
import { formatTime } from '../../core/reports/format.ts';
import { describeWork } from '../../operations/schedule-summary.ts';
import type { ScheduleCreateContext } from './command.ts';
import { planSchedule, type SchedulePlan, type Timing } from './plan-schedule.ts';
import { withSchedules } from '../../operations/schedule-server.ts';

/** Catch-up window: firings missed by more are skipped, because runs are long and the next time comes anyway. */
const CATCH_UP_MINUTES = 10;

export async function scheduleCreate(context: ScheduleCreateContext): Promise<number> {
  let plan = await planSchedule(context);
  const { template, store, config } = plan;
  if (template !== null) {
    const tried = { template, isInherited: false, baseModel: config.baseModel, models: {} };
    if (await proveChatTemplate(tried, context)) plan = { ...plan, config: keepDate(config, context.output) };
    await store.putBlob(template.bytes);
  }
  tell(context, plan, await createSchedule(context, plan));
  return EXIT.ok;
}

function tell({ output, env, args }: ScheduleCreateContext, plan: SchedulePlan, next: Date | null): void {
  const { name, config, timing, begins, production } = plan;
  const work = describeWork(config, production);
  output.line(`${name} retrains ${config.agent} on ${config.baseModel}, ${timing.text}, ${work}`);
  output.line(`next     ${next === null ? 'never: all its times are in the past' : formatTime(next)}`);
  const later = production ? `from ${production.run}@production` : 'where the last one ended';
  output.line(`starts   from ${begins === null ? 'a new adapter' : policyName(begins)}; later runs start ${later}`);
  output.line(
    `rules    skipped while a run is in progress, or if more than ${CATCH_UP_MINUTES} minutes late; paused by a failed run`,
  );
  if (configuredTarget(env) === null)
    output.line(`workers  runs wait for a worker: start temper dev --agent ${args.agent} (or temper worker)`);
}

/** Returns the first firing time. */
async function createSchedule(place: ProjectPlace, plan: SchedulePlan): Promise<Date | null> {
  const { name, config, from, timing, store, production } = plan;
  const { queues, ...settings } = await loadConfig(place.project, place.env);
  const storeId = await store.id();
  const input: RetrainInput = {
    schedule: name,
    config,
    from,
    storeId,
    queues: { rollout: rolloutQueue(storeId, config.agent), gpu: storeQueue(storeId, queues.gpu) },
    ...(production && { production }),
    ...trackingOf(storeId, namesOfTargets(settings)),
  };
  return withSchedules(place, async (schedules, server) => {
    // A run cannot write attributes unknown to the namespace; temper doctor reports missing permissions.
    await registerSearchAttributes(server).catch(() => undefined);
    await refuseExisting(schedules, storeId, name);
    await recordSchedule(store, name, { config, from });
    const creating = schedules.create<typeof retrain>({
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
    const handle = await creating.catch((error: unknown) => refuseTimes(timing, error));
    return (await handle.describe()).info.nextActionTimes[0] ?? null;
  });
}

/** Temporal's client makes a TypeError of what the server says of a cron line. */
function refuseTimes({ cron }: Timing, cause: unknown): never {
  if (cron === null || !(cause instanceof TypeError)) throw cause;
  throw badConfig(
    `--cron must be a cron line that Temporal reads, got ${JSON.stringify(cron)} (${cause.message}); write it like '0 3 * * *'`,
    { cause },
  );
}

/** Refuses an existing schedule before its record is replaced. */
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

/** Intervals count from now, not from 1970: the first firing comes after one interval. */
function toSpec({ everyMs, cron }: Timing): ScheduleSpec {
  if (everyMs === null) return { cronExpressions: [cron] };
  const offset = Math.floor(Date.now() / 1000) * 1000;
  return { intervals: [{ every: everyMs, offset: offset % everyMs }] };
}
