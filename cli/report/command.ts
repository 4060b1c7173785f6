import { relative, resolve } from 'node:path';
import { RUN_ARGUMENT } from '../../operations/flags.ts';
import { defineCommand } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const reportCommand = defineCommand({
  name: 'report',
  group: 'Look',
  summary: 'write the pages of a run into one HTML file: result, curves, attempts side by side',
  details: [
    'Reads the store and needs no server. The report is the run as temper ui shows it, in a file that works offline.',
  ],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    out: { kind: 'text', placeholder: 'FILE', description: 'output file', default: '.temper/reports/RUN.html' },
  },
  async run({ flags, args, project, cwd, env, output }): Promise<number> {
    const { defaultReportFile, writeReport } = await import('./write-report.ts');
    const { openProjectStore } = await import('../../workers/config/project-store.ts');
    const file = flags.out === null ? defaultReportFile(project, args.run) : resolve(cwd, flags.out);
    await writeReport(await openProjectStore(project, env), args.run, file);
    output.line(`report: ${relative(cwd, file) || file}`);
    return EXIT.ok;
  },
});
