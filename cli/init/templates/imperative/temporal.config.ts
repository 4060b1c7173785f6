/** Configuration of this project. Every key has a default. */
import { defineConfig } from 'temper-rl/config';

export default defineConfig({
  // Store of the runs: a folder, or s3://BUCKET/PREFIX.
  // store: '.temper/store',
  // The engine that plays and trains on this machine.
  // engine: { device: 'auto', dtype: 'auto', threads: 2 },
  // Names for models: a folder, or hub:OWNER/NAME.
  // models: { mine: './models/mine' },
});
