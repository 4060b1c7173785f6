import { defineCommand, JSON_FLAG } from '../command-line/command.ts';

export const runsCommand = defineCommand({
  name: 'runs',
  summary: 'list the runs of this project',
  arguments: {},
  flags: { json: JSON_FLAG },
  async run(context): Promise<number> {
    const { runs } = await import('./runs.ts');
    return runs(context);
  },
});
