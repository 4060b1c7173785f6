/** How this project trains, and where. */
import { defineConfig } from 'temper-rl/config';

export default defineConfig({
  // Flags of temper train; temper auto uses them too.
  train: {
    'base-model': 'pocket',
    steps: 24,
    'groups-per-step': 8,
    'max-tokens': 8,
    'learning-rate': 0.002,
  },
  // Store of the runs: a folder, or s3://BUCKET/PREFIX.
  // store: '.temper/store',
  // The engine that plays and trains on this machine.
  // engine: { device: 'auto', dtype: 'auto', threads: 2 },
});
