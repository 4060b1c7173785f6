import { relative, resolve } from 'node:path';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { version } from '../../workers/version.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { reportCommand } from './command.ts';
import { defaultReportFile, writeReport } from './write-report.ts';

export async function report(context: CommandContext<typeof reportCommand>): Promise<number> {
  const { flags, args, project, cwd, env, output } = context;
  const file = flags.out === null ? defaultReportFile(project, args.run) : resolve(cwd, flags.out);
  await writeReport(await openProjectStore(project, env), args.run, file, version());
  output.line(`report: ${relative(cwd, file) || file}`);
  return EXIT.ok;
}
