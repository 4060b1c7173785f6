import pc from 'picocolors';
import { examine } from '../../workers/doctor/doctor.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { doctorCommand } from './command.ts';
import { PLANNED_FLAGS, doctorModel } from './doctor-model.ts';

/** Flags that need --model. */
const MODEL_FLAGS = [...PLANNED_FLAGS, 'context', 'engine', 'device', 'dtype', 'devices'] as const;
const MODEL_SWITCHES = ['load-in-4bit', 'shard-base-model'] as const;

export async function doctor(context: CommandContext<typeof doctorCommand>): Promise<number> {
  const { flags, project, env, output } = context;
  checkLeases(context);
  if (flags.model !== null && flags.agent.length > 0)
    throw new UsageError('--agent has no effect with --model; run temper doctor twice');
  if (flags.model !== null) return doctorModel(context, flags.model);
  const given = MODEL_FLAGS.find((name) => flags[name] !== null) ?? MODEL_SWITCHES.find((name) => flags[name]);
  if (given !== undefined) throw new UsageError(`--${given} has no effect without --model; pass both, or leave it out`);
  if (flags.leases) return (await import('./doctor-leases.ts')).doctorLeases(context);
  const checks = await examine({ project, env, agents: flags.agent });
  if (flags.json) printJson(output, checks);
  else output.line(renderChecks(checks, output.isTerminal));
  return checks.some(({ ok }) => ok === false) ? EXIT.failed : EXIT.ok;
}

function checkLeases({ args, flags }: CommandContext<typeof doctorCommand>): void {
  if (args.agent !== null && !flags.leases)
    throw new UsageError(
      `${args.agent} has no effect without --leases; pass --agent NAME to check the queue of an agent`,
    );
  if (flags.leases && (flags.model !== null || flags.agent.length > 0))
    throw new UsageError('--model and --agent have no effect with --leases; run temper doctor twice');
}

type Check = Awaited<ReturnType<typeof examine>>[number];

function renderChecks(checks: readonly Check[], hasColors: boolean): string {
  const { green, red, dim } = pc.createColors(hasColors);
  const rows = checks.map(({ name, ok, detail, remedy }) => {
    const mark = ok === null ? dim('–') : ok ? green('ok') : red('no');
    return [mark, name, remedy === null ? detail : `${detail}; ${remedy}`];
  });
  return createTable([], rows);
}
