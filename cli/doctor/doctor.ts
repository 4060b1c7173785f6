import pc from 'picocolors';
import { examine } from '../../workers/doctor/doctor.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { doctorCommand } from './command.ts';
import { doctorModel } from './doctor-model.ts';

export async function doctor(context: CommandContext<typeof doctorCommand>): Promise<number> {
  const { flags, project, env, output } = context;
  if (context.args.agent !== null && !flags.leases)
    throw new UsageError(
      `${context.args.agent} has no effect without --leases; pass --agent NAME to check the queue of an agent`,
    );
  if (flags.model !== null) return doctorModel(context, flags.model);
  if (flags.leases) return (await import('./doctor-leases.ts')).doctorLeases(context);
  const checks = await examine({ project, env, agents: flags.agent });
  if (flags.json) printJson(output, checks);
  else output.line(renderChecks(checks, output.isTerminal));
  return checks.some(({ ok }) => ok === false) ? EXIT.failed : EXIT.ok;
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
