/** A judge on the run's own engine: its errors mean what they mean for an agent's call. */
import { afterEach, beforeEach, expect, test } from 'vitest';

import { skippingClock } from '../play.ts';
import { judge, saying } from './judging.ts';
import { startScriptedJudge, type JudgeReply, type ScriptedJudge } from './scripted-judge.ts';

let scripted: ScriptedJudge;
beforeEach(async () => {
  scripted = await startScriptedJudge();
});
afterEach(() => scripted.close());

const group = [saying('0', 'good'), saying('1', 'bad')];
const failing = (status: number, error: object): JudgeReply => ({ status, body: JSON.stringify({ error }) });
const INTERNAL = failing(500, { type: 'EngineFailed', code: 'internal', message: 'failed on this request' });
const patient = () => ({ callRetryBudgetMs: 600_000, clock: skippingClock() });

test('an engine judge fails by an internal error that stays for 15 s, long before its budget ends', async () => {
  scripted.replyNext(...Array.from({ length: 50 }, () => INTERNAL));
  const options = patient();
  const start = options.clock.now();
  await expect(judge(scripted, group, { onEngine: true, ...options })).rejects.toMatchObject({
    type: 'JudgeFailed',
    message: expect.stringMatching(/failed on a call, and on its retries for 15 s: failed on this request/) as string,
  });
  expect(options.clock.now() - start).toBeLessThan(60_000);
});

test('an internal error that passes is waited out; a provider’s of the same code is an outage', async () => {
  scripted.replyNext(...Array.from({ length: 3 }, () => INTERNAL));
  expect((await judge(scripted, group, { onEngine: true, ...patient() })).scores).toHaveLength(2);
  scripted.replyNext(...Array.from({ length: 20 }, () => INTERNAL));
  expect((await judge(scripted, group, patient())).scores).toHaveLength(2);
});

test('what the engine cannot answer for is named, as to an agent', async () => {
  scripted.replyNext(failing(422, { type: 'StoreCorrupt', code: 'cannot_answer', message: 'blobs/1 is damaged' }));
  await expect(judge(scripted, group, { onEngine: true })).rejects.toMatchObject({
    type: 'StoreCorrupt',
    message: expect.stringContaining('blobs/1 is damaged') as string,
  });
});
