import pc from 'picocolors';
import { examine } from '../../workers/doctor/doctor.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { doctorCommand } from './command.ts';

export async function doctor(context: CommandContext<typeof doctorCommand>): Promise<number> {
  const { flags, project, env, output } = context;
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
