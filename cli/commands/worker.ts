import { resolve } from 'node:path';
import type { Command } from '../command.ts';
import { stringFlags } from '../command.ts';
import { EXIT } from '../errors.ts';

export const worker: Command = {
  name: 'worker',
  summary: 'a TypeScript worker for a deployment: runs workflows, and plays the agents it is given',
  usage: 'worker [--agent FILE]…',
  details: [
    'Temporal is found by TEMPORAL_* or temporal.toml; store and engine by temporal.config.ts, or TEMPER_STORE,',
    'TEMPER_ENGINE_URL and TEMPER_ENGINE_KEY. Runs until it is told to end; then it drains.',
  ],
  positionals: [],
  options: {
    agent: {
      type: 'string',
      multiple: true,
      placeholder: 'FILE',
      description: 'an agent to play; may be given several times',
    },
  },
  async run({ flags, project, cwd, env, signal }) {
    const { loadAgent } = await import('../train/load-agent.ts');
    const { runWorker } = await import('../../workers/worker.ts');
    const files = stringFlags(flags, 'agent').map((file) => resolve(cwd, file));
    for (const file of files) await loadAgent(file, cwd);
    await runWorker({ project, agents: files, signal, env });
    return EXIT.ok;
  },
};
