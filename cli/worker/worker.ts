import { resolve } from 'node:path';
import type { Command } from '../command-line/command.ts';
import { stringFlags } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const worker: Command = {
  name: 'worker',
  summary: 'run a TypeScript worker for a deployment: workflows and the agents you pass',
  usage: 'worker [--agent FILE]…',
  details: [
    'Finds Temporal by TEMPORAL_* or temporal.toml, and store and engine by temporal.config.ts or TEMPER_STORE,',
    'TEMPER_ENGINE_URL and TEMPER_ENGINE_KEY. On SIGTERM or Ctrl-C it finishes in-flight work, then exits.',
  ],
  positionals: [],
  options: {
    agent: {
      type: 'string',
      multiple: true,
      placeholder: 'FILE',
      description: 'agent to play; repeatable',
    },
  },
  async run({ flags, project, cwd, env, signal }) {
    const { loadAgent } = await import('../train/load-agent.ts');
    const { runWorker } = await import('../../workers/worker/worker.ts');
    const files = stringFlags(flags, 'agent').map((file) => resolve(cwd, file));
    for (const file of files) await loadAgent(file, cwd);
    await runWorker({ project, agents: files, signal, env });
    return EXIT.ok;
  },
};
