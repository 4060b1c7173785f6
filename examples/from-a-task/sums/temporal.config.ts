/** How this project trains, and where. Every key has a default. */
import { defineConfig } from 'temper-rl/config';

export default defineConfig({
  // Flags of `temper train` that you need not type; on the command line they win.
  train: {
    'base-model': 'pocket',
  },
  // Store of the runs: a folder, or s3://BUCKET/PREFIX.
  // store: '.temper/store',
  // The engine that plays and trains on this machine.
  // engine: { device: 'auto', dtype: 'auto', threads: 2 },
  // Groups of attempts that are played at once.
  // capacity: { rollouts: 16 },
  // Names for models: a folder, or hub:OWNER/NAME.
  // models: { mine: './models/mine' },
});
