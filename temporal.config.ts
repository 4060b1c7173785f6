/** How this installation is built; every key has a default (`workers/config/config.ts`). */
import { defineConfig } from './workers/config/config.ts';

export default defineConfig({
  queues: { workflows: 'temper', gpu: 'gpu' },
  capacity: { workflowTasks: 10, cachedWorkflows: 50, rollouts: 16 },
  engine: { url: null, keyVariable: 'TEMPER_ENGINE_KEY', threads: 2 },
});
