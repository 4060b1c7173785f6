import { defineCommand, RUN_ARGUMENT } from '../command-line/command.ts';

export const reportCommand = defineCommand({
  name: 'report',
  summary: 'write an HTML report: curves, groups side by side, attempts',
  details: ['Reads the store and needs no server. The report is one file that works offline.'],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    out: { kind: 'text', placeholder: 'FILE', description: 'output file; default: .temper/reports/RUN.html' },
  },
});
