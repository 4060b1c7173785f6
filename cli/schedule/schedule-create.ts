import type { Command, CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { formatTime, plural } from '../terminal/format.ts';
import type { PlannedSchedule } from './read-planned-schedule.ts';
import { RUN_OPTIONS } from '../train/run-flags.ts';

export const scheduleCreate: Command = {
  name: 'schedule create',
  summary: 'create a schedule; each firing is a run that starts from the last checkpoint',
  usage: "schedule create AGENT --name NAME --every 1d | --cron '0 3 * * *' --base-model MODEL [flags]",
  details: [
    'Runs are named NAME-1, NAME-2, … Each has --steps steps, its own seed, and the scenarios that the agent has at that',
    'time. A firing is skipped while a run is in progress, or if it is more than ten minutes late. A failed run pauses',
    'the schedule. Runs wait for a worker with the agent: start temper dev --agent AGENT, or temper worker.',
  ],
  examples: [
    "temper schedule create agent.ts --name nightly --cron '0 3 * * *' --base-model Qwen/Qwen3-4B --steps 50",
    'temper schedule create examples/tic-tac-toe/agent.ts --name hourly --every 1h --from demo@200 --base-model pocket --steps 20',
  ],
  positionals: ['AGENT'],
  options: {
    name: { type: 'string', placeholder: 'NAME', description: 'name of the schedule' },
    every: { type: 'string', placeholder: 'T', description: 'interval, counted from now: 30m, 6h, 1d, 2w' },
    cron: { type: 'string', placeholder: 'LINE', description: 'cron line of five fields, in UTC' },
    from: {
      type: 'string',
      placeholder: 'RUN[@STEP]',
      description: 'checkpoint that the first run starts from; default: a new adapter',
    },
    ...RUN_OPTIONS,
  },
  async run(context) {
    const { readPlannedSchedule } = await import('./read-planned-schedule.ts');
    const { createSchedule } = await import('./create.ts');
    const plan = await readPlannedSchedule(context);
    const next = await createSchedule(context, plan);
    await tell(context, plan, next);
    return EXIT.ok;
  },
};

async function tell({ output, env, positionals }: CommandContext, plan: PlannedSchedule, next: Date | null) {
  const { CATCH_UP_MINUTES } = await import('./create.ts');
  const { configuredTarget } = await import('../../workers/connection.ts');
  const { policyName } = await import('../../core/policy-name.ts');
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
    output.line(`workers  runs wait for a worker: start temper dev --agent ${positionals[0]} (or temper worker)`);
}
