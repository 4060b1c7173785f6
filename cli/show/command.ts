import { JSON_FLAG, RUN_ARGUMENT } from '../../operations/flags.ts';
import { defineCommand } from '../command-line/command.ts';

export const showCommand = defineCommand({
  name: 'show',
  summary: 'show one run: its state, its results and what it is waiting for',
  details: [
    'Reads the store and needs no server. If a server answers within two seconds, you also see the pending activities.',
  ],
  arguments: { run: RUN_ARGUMENT },
  flags: { json: JSON_FLAG },
  run: async (context): Promise<number> => (await import('./show.ts')).show(context),
});
