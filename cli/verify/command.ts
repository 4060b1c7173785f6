import { defineCommand, JSON_FLAG, RUN_ARGUMENT } from '../command-line/command.ts';

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'check every hash of a run, and recompute one step',
  details: [
    'Reads the store, writes nothing and needs no server. One step is recomputed from its recorded rollouts on this',
    'machine; on the platform that trained it, the bytes must match. Exit code 1 if a check fails.',
  ],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    step: { kind: 'integer', minimum: 0, placeholder: 'N', description: 'step to recompute; default: the last one' },
    branch: { kind: 'integer', minimum: 0, placeholder: 'B', description: 'branch of that step; default: the newest' },
    'no-recompute': { kind: 'boolean', description: 'only check hashes; needs no Python' },
    json: JSON_FLAG,
  },
});
