/** Results that programs post with the key that calls the model: the policy may have that key, too. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';

import { endpoint, external, ruler } from '../../sdk/index.ts';
import { playOne, type PlayOptions } from './play.ts';
import { sharedEngine } from './shared-engine.ts';
import { ROLLOUT, script } from './program-script.ts';

const engine = await sharedEngine();

const play = (text: string, options: PlayOptions = {}) =>
  playOne(engine, script(text), { rollout: ROLLOUT, ...options });

describe('the key that calls the model gives no reward', () => {
  const posting = `const { status } = await post('/attempt/result', '1'); console.log('post ' + status);`;

  test.each([
    ['prints', `console.log('{"reward": 0.25}')`, 'the last line of stdout of'],
    [
      'writes',
      `import fs from 'node:fs'; fs.writeFileSync(env.TEMPER_RESULT_FILE, '0.25'); console.log('')`,
      'the result file of',
    ],
  ])('over the one that the program %s itself', async (_, own, place) => {
    const attempt = await play(posting + own);
    expect(attempt).toMatchObject({ status: 'ok', reward: 0.25 });
    expect(attempt.logs).toEqual([
      'post 204',
      expect.stringMatching(`^the posted result has no effect, because ${place}`),
    ]);
  });

  test.each([
    ['external', { reward: external() }],
    ['ruler', { reward: ruler({ judge: 'openai/gpt-5-mini' }) }],
    ['rewardGroup', { rewardGroup: () => [0] }],
  ])('where others reward the attempts: %s', async (_, graded) => {
    const attempt = await play(posting, { graded });
    expect(attempt).toMatchObject({ status: 'ok', reward: null, logs: ['post 403'] });
    expect(await play(`${posting} console.log('{"metrics": {"win": true}}')`, { graded })).toMatchObject({
      metrics: { win: true },
    });
  });

  test('nor to a server that plays attempts', async () => {
    const server = createServer((request, response) => {
      let told = '';
      request.on('data', (text) => (told += text)).on('end', () => void answer(JSON.parse(told), response));
    });
    const answer = async (
      told: { baseURL: string; apiKey: string; scenario: { id: string } },
      response: ServerResponse,
    ) => {
      const url = told.baseURL.replace('/v1', '/attempt/result');
      await fetch(url, { method: 'POST', body: '1', headers: { 'x-api-key': told.apiKey } });
      response.end(told.scenario.id === 'told' ? '{"reward": 0.25}' : '{"status": "played"}');
    };
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const rollout = endpoint(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const playIt = (id: string, more: PlayOptions = {}) =>
      playOne(engine, rollout, { scenario: { id }, rollout: ROLLOUT, ...more });
    expect(await playIt('told')).toMatchObject({ status: 'ok', reward: 0.25 });
    expect(await playIt('posted')).toMatchObject({ status: 'ok', reward: 1 });
    expect((await playIt('posted', { graded: { reward: external() } })).status).toBe('failed');
  });
});
