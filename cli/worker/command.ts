import { defineCommand } from '../command-line/command.ts';

export const workerCommand = defineCommand({
  name: 'worker',
  summary: 'run a TypeScript worker for a deployment: workflows and the agents you pass',
  details: [
    'Finds Temporal by TEMPORAL_* or temporal.toml, and store and engine by temporal.config.ts or TEMPER_STORE,',
    'TEMPER_ENGINE_URL and TEMPER_ENGINE_KEY. On SIGTERM or Ctrl-C it finishes in-flight work, then exits.',
  ],
  arguments: {},
  flags: { agent: { kind: 'texts', placeholder: 'FILE', description: 'agent to play; repeatable' } },
});
