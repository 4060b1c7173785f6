import { afterAll } from 'vitest';
import { startFakeEngine, type FakeEngine } from '../fake-engine.ts';

/** An engine that all tests of a file share; it closes after the last of them. */
export async function sharedEngine(): Promise<FakeEngine> {
  const engine = await startFakeEngine();
  afterAll(() => engine.close());
  return engine;
}
