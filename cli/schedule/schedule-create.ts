import { policyName } from '../../core/policy-name.ts';
import { configuredTarget } from '../../workers/connection/connection.ts';
import { keepDate, proveChatTemplate } from '../command-line/chat-template.ts';
import { EXIT } from '../command-line/errors.ts';
import { formatTime, plural } from '../terminal/format.ts';
import type { ScheduleCreateContext } from './command.ts';
import { CATCH_UP_MINUTES, createSchedule } from './create.ts';
import { readPlannedSchedule, type PlannedSchedule } from './read-planned-schedule.ts';

export async function scheduleCreate(context: ScheduleCreateContext): Promise<number> {
  let plan = await readPlannedSchedule(context);
  const { template, store, config } = plan;
  if (template !== null) {
    const tried = { template, isInherited: false, baseModel: config.baseModel, models: {} };
    if (await proveChatTemplate(tried, context)) plan = { ...plan, config: keepDate(config, context.output) };
    await store.putBlob(template.bytes);
  }
  tell(context, plan, await createSchedule(context, plan));
  return EXIT.ok;
}

function tell({ output, env, args }: ScheduleCreateContext, plan: PlannedSchedule, next: Date | null): void {
  const { name, config, timing, begins } = plan;
  output.line(
    `${name} retrains ${config.agent} on ${config.baseModel}, ${timing.text}, ${plural(config.steps, 'step')} each`,
  );
  output.line(`next     ${next === null ? 'never: all its times are in the past' : formatTime(next)}`);
  output.line(
    `starts   from ${begins === null ? 'a new adapter' : policyName(begins)}; later runs start where the last one ended`,
  );
  output.line(
    `rules    skipped while a run is in progress, or if more than ${CATCH_UP_MINUTES} minutes late; paused by a failed run`,
  );
  if (configuredTarget(env) === null)
    output.line(`workers  runs wait for a worker: start temper dev --agent ${args.agent} (or temper worker)`);
}
