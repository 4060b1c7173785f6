/** Members that a hosted model's server may add to its answers change nothing of them. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';

import { FAKE_ENGINE_KEY, startFakeEngine, type FakeEngine } from '../fake-engine.ts';
import { memoryJournal, playOne, say, type TestRollout } from './play.ts';

let engine: FakeEngine;
let provider: FakeEngine;
beforeAll(async () => {
  engine = await startFakeEngine();
  provider = await startFakeEngine();
});
afterAll(() => Promise.all([engine.close(), provider.close()]));
beforeEach(() => {
  vi.stubEnv('OPENAI_BASE_URL', `${provider.url}/v1`);
  vi.stubEnv('OPENAI_API_KEY', FAKE_ENGINE_KEY);
});
afterEach(() => vi.unstubAllEnvs());

test('a completion that has a member named refused is an answer, first and in a repetition', async () => {
  const journal = memoryJournal();
  const choices = [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }];
  const body = JSON.stringify({ id: 'x', object: 'chat.completion', model: 'gpt', choices, refused: false });
  provider.failNext({ status: 200, body });
  const asking: TestRollout = async (context) => (await say(context.hosted('openai/gpt-5-mini'), 'hello')).length;
  const first = await playOne(engine, asking, { journal });
  expect(first).toMatchObject({ status: 'ok', reward: 4, hostedCalls: [{ refusal: null }] });
  expect(await playOne(engine, asking, { journal })).toEqual(first);
});
