import { afterAll, beforeEach, onTestFinished } from 'vitest';
import { startFakeEngine, type FakeEngine, type FakeEngineOptions } from '../fake-engine.ts';

/** An engine that all tests of a file share: each of them finds it without failures, and with nothing executed. */
export async function sharedEngine(options?: FakeEngineOptions): Promise<FakeEngine> {
  const engine = await startFakeEngine(options);
  beforeEach(() => {
    engine.executed.length = 0;
    engine.failWhen(() => null);
  });
  afterAll(() => engine.close());
  return engine;
}

/** An engine of one test. */
export async function temporaryEngine(options?: FakeEngineOptions): Promise<FakeEngine> {
  const engine = await startFakeEngine(options);
  onTestFinished(() => engine.close());
  return engine;
}
