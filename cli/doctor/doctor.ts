import pc from 'picocolors';
import type { examine } from '../../workers/doctor/doctor.ts';
import type { Command } from '../command-line/command.ts';
import { JSON_OPTION, stringFlags } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';

export const doctor: Command = {
  name: 'doctor',
  summary: 'check server, queues, engine, store and environments, and say what to fix',
  usage: 'doctor [--agent NAME]… [--json]',
  details: ['Exit code 1 if a check fails. Checks of things that are not running now are shown, but do not fail.'],
  positionals: [],
  options: {
    agent: {
      type: 'string',
      multiple: true,
      placeholder: 'NAME',
      description: "also check this agent's queue; repeatable",
    },
    json: JSON_OPTION,
  },
  async run({ flags, project, env, output }) {
    const doctors = await import('../../workers/doctor/doctor.ts');
    const checks = await doctors.examine({ project, env, agents: stringFlags(flags, 'agent') });
    if (flags['json'] === true) printJson(output, checks);
    else output.line(renderChecks(checks, output.isTerminal));
    return checks.some(({ ok }) => ok === false) ? EXIT.failed : EXIT.ok;
  },
};

type Check = Awaited<ReturnType<typeof examine>>[number];

function renderChecks(checks: readonly Check[], hasColors: boolean): string {
  const { green, red, dim } = pc.createColors(hasColors);
  const rows = checks.map(({ name, ok, detail, remedy }) => {
    const mark = ok === null ? dim('–') : ok ? green('ok') : red('no');
    return [mark, name, remedy === null ? detail : `${detail}; ${remedy}`];
  });
  return createTable([], rows);
}
