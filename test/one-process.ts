/** Files of the project `unit` share their process: each of them leaves it as it found it. */
import { afterAll, vi } from 'vitest';

const env = { ...process.env };
const folder = process.cwd();

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  process.chdir(folder);
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
});
