import { CHECKPOINT_ARGUMENT, CHECKPOINT_HELP, JSON_FLAG } from '../../operations/flags.ts';
import { defineCommand } from '../command-line/command.ts';

export const verifyCommand = defineCommand({
  name: 'verify',
  group: 'Operate',
  summary: 'check every hash of a run, and recompute one step',
  details: [
    'Reads the store, writes nothing and needs no server. The whole run is checked, and the step of CHECKPOINT is',
    'recomputed from its recorded rollouts on this machine; on the platform that trained it, the bytes must match. Exit',
    'code 1 if a check fails.',
    ...CHECKPOINT_HELP,
  ],
  examples: ['temper verify demo', 'temper verify demo@12'],
  arguments: { checkpoint: CHECKPOINT_ARGUMENT },
  flags: {
    'no-recompute': { kind: 'boolean', description: 'only check hashes; needs no Python' },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./verify.ts')).verify(context),
});
