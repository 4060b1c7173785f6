import { badConfig } from '../../core/contract/failures.ts';
import { CHECKPOINT_HELP } from '../../operations/flags.ts';
import { AGENT_ARGUMENT, defineCommand, type CommandContext } from '../command-line/command.ts';
import * as schedules from '../../operations/schedules.ts';
import { actionsOf } from '../command-line/to-command.ts';
import { PRODUCTION_FLAGS, readRunSource, takesFromProject } from '../planning/run-source.ts';
import { RUN_FLAGS } from '../planning/run-flag-table.ts';

export const scheduleCreateCommand = defineCommand({
  name: 'schedule create',
  summary: 'create a schedule; each firing is a run that starts from the last checkpoint',
  usage: "[AGENT] --name NAME --every 1d | --cron '0 3 * * *' --base-model MODEL | --from-production RUN [flags]",
  details: [
    'Runs are named NAME-1, NAME-2, … Each has --steps steps, its own seed, and the scenarios that the agent has at that',
    'time. A firing is skipped while a run is in progress, or if it is more than ten minutes late. A failed run pauses',
    'the schedule. Runs wait for a worker with the agent: start temper dev --agent AGENT, or temper worker.',
    'With --from-production, a firing trains the conversations that have new feedback, from the promoted checkpoint of RUN.',
    'Its checkpoint is promoted unless it is significantly worse on held-out scenarios.',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    "temper schedule create agent.ts --name nightly --cron '0 3 * * *' --base-model Qwen/Qwen3-4B --steps 50",
    'temper schedule create examples/tic-tac-toe/agent.ts --name hourly --every 1h --from demo@200 --base-model pocket --steps 20',
    "temper schedule create agent.ts --name nightly --cron '0 3 * * *' --from-production demo --at-least 200",
  ],
  arguments: { agent: AGENT_ARGUMENT },
  flags: {
    name: {
      kind: 'text',
      placeholder: 'NAME',
      description: 'name of the schedule',
      required: 'pass a name such as --name nightly (its runs are nightly-1, nightly-2, …)',
    },
    every: {
      kind: 'text',
      placeholder: 'T',
      description: 'interval, counted from now: 30m, 6h, 1d, 2w',
      excludes: ['cron'],
      form: {
        pattern: /^[1-9]\d{0,5}[mhdw]$/,
        rule: 'a whole number of m, h, d or w (minutes, hours, days, weeks)',
        example: '6h',
      },
    },
    cron: { kind: 'text', placeholder: 'LINE', description: 'cron line of five fields, in UTC' },
    from: {
      kind: 'text',
      placeholder: 'CHECKPOINT',
      description: 'checkpoint that the first run starts from',
      default: 'a new adapter',
    },
    ...RUN_FLAGS,
    ...PRODUCTION_FLAGS,
    epochs: { ...PRODUCTION_FLAGS.epochs, needs: ['from-production'] },
  },
  absent: {
    adapter:
      'every run after the first starts from trained weights; to start from a PEFT adapter, run temper train AGENT --adapter FOLDER and pass its run as --from',
    'warm-start':
      'every run after the first starts from trained weights; to start from chats, run temper train FILE and pass its run as --from',
  },
  async projectFlags(context) {
    const { readProjectFlags } = await import('../planning/project-flags.ts');
    const source = readRunSource({ source: context.args.agent, flags: context.flags });
    return readProjectFlags(context, (name) => takesFromProject(source, null, name));
  },
  run: async (context): Promise<number> => (await import('./create.ts')).scheduleCreate(context),
});

export type ScheduleCreateContext = CommandContext<typeof scheduleCreateCommand>;

export const scheduleCommand = defineCommand({
  name: 'schedule',
  group: 'Start',
  summary: 'retrain on a schedule, each time from the newest checkpoint',
  usage: 'ACTION …',
  details: ['See temper schedule ACTION --help. Every action needs a Temporal server; temper dev starts one.'],
  arguments: {},
  flags: {},
  actions: [scheduleCreateCommand, ...actionsOf(schedules)],
  run() {
    throw badConfig('ACTION is missing; see temper schedule --help');
  },
});
