import { relative, resolve } from 'node:path';
import type { Command } from '../command-line/command.ts';
import { stringFlag } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { openProjectStore } from '../connections/project-store.ts';
import { version } from '../command-line/version.ts';

export const report: Command = {
  name: 'report',
  summary: 'write an HTML report: curves, groups side by side, attempts',
  usage: 'report RUN [--out FILE]',
  details: ['Reads the store and needs no server. The report is one file that works offline.'],
  positionals: ['RUN'],
  options: {
    out: { type: 'string', placeholder: 'FILE', description: 'output file; default: .temper/reports/RUN.html' },
  },
  async run({ flags, positionals, project, cwd, env, output }) {
    const { defaultReportFile, writeReport } = await import('./write-report.ts');
    const run = positionals[0]!;
    const out = stringFlag(flags, 'out');
    const file = out === null ? defaultReportFile(project, run) : resolve(cwd, out);
    await writeReport(await openProjectStore(project, env), run, file, version());
    output.line(`report: ${relative(cwd, file) || file}`);
    return EXIT.ok;
  },
};
