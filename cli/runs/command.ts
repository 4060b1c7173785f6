import { JSON_FLAG } from '../../operations/flags.ts';
import { defineCommand } from '../command-line/command.ts';

export const runsCommand = defineCommand({
  name: 'runs',
  summary: 'list the runs of this project',
  arguments: {},
  flags: { json: JSON_FLAG },
  run: async (context): Promise<number> => (await import('./runs.ts')).runs(context),
});
