import { defineCommand } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const workerCommand = defineCommand({
  name: 'worker',
  group: 'Operate',
  summary: 'run a TypeScript worker for a deployment: workflows and the agents you pass',
  details: [
    'Finds Temporal by TEMPORAL_* or temporal.toml, and store and engine by temporal.config.ts or TEMPER_STORE,',
    'TEMPER_ENGINE_URL and TEMPER_ENGINE_KEY. On SIGTERM or Ctrl-C it finishes in-flight work, then exits.',
  ],
  arguments: {},
  flags: {
    agent: { kind: 'texts', placeholder: 'FILE', description: 'agent to play; repeatable' },
    'metrics-port': {
      kind: 'port',
      placeholder: 'N',
      description: 'port of /metrics for Prometheus',
      default: 'metrics.port of temporal.config.ts',
    },
  },
  async run({ flags, project, cwd, env, signal }): Promise<number> {
    const { loadAgent } = await import('../planning/load-agent.ts');
    const { runWorker } = await import('../../workers/worker/worker.ts');
    const agents: string[] = [];
    for (const file of flags.agent) agents.push((await loadAgent(file, cwd)).path);
    await runWorker({ project, agents, signal, env, metricsPort: flags['metrics-port'] });
    return EXIT.ok;
  },
});
