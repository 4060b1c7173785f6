/** AReaL's protocol: what its client sends, and what it needs of the answers. */
import { expect, test } from 'vitest';
import { readGiven } from '../../../store/records/given-rewards.ts';
import { serveReview, type Served } from './served.ts';

const GROUP = { run: 'demo', branch: 0, step: 1, group: 0 };

async function start(served: Served, task: unknown, key: string | null = null) {
  const { status, text } = await served.ask(
    'POST',
    '/rl/start_session',
    JSON.stringify({ task_id: task, api_key: key }),
  );
  return { status, ...(JSON.parse(text) as { session_id?: string; api_key?: string; error?: { message: string } }) };
}

const post = async (served: Served, path: string, key: string, body: object = {}) => {
  const { status, text } = await served.ask('POST', path, JSON.stringify(body), { authorization: `Bearer ${key}` });
  const told = JSON.parse(text) as { error?: { message: string } };
  return { status, told: told.error?.message ?? told };
};

test('a session gives the reward of the attempt that it names, and ends', async () => {
  const served = await serveReview();
  const { session_id: id, api_key: key = '' } = await start(served, 'demo/0.1.0.1');
  expect([id, key.slice(0, 8)]).toEqual(['demo/0.1.0.1', 'sk-sess-']);
  expect(await post(served, '/rl/set_reward', key, { reward: 1, interaction_id: null })).toEqual({
    status: 200,
    told: { message: 'success' },
  });
  expect(await post(served, '/rl/end_session', key)).toEqual({
    status: 200,
    told: { message: 'success', interaction_count: 1 },
  });
  expect(await readGiven(served.store, GROUP)).toMatchObject([{ attempt: 1, reward: 1, by: null }]);
  expect(await start(served, 'demo/0.1.0.1', key)).toMatchObject({ status: 200, api_key: key });
});

test('a session key opens its own reward, and nothing else', async () => {
  const served = await serveReview();
  const { api_key: key = '' } = await start(served, 'demo/0.1.0.1');
  const files = await served.files();
  const bearer = { authorization: `Bearer ${key}` };
  const statuses = [
    await served.ask('POST', '/v1/runs/demo/attempts/0.1.0.1/reward', '{"reward": 1}', bearer),
    await served.ask('GET', '/v1/runs/demo/rewards', null, bearer),
    await served.ask('POST', '/rl/start_session', '{"task_id": "demo/0.1.0.2"}', bearer),
    await served.ask('POST', `/r/${key.replace('sk-sess-', '')}`, 'reward=1', {
      'content-type': 'application/x-www-form-urlencoded',
    }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([401, 401, 401, 404]);
  expect(await start(served, 'demo/0.1.0.2', key)).toMatchObject({ status: 409 });
  expect(await served.files()).toEqual(files);
});

test('what a session cannot do is said, and nothing changes', async () => {
  const served = await serveReview();
  const { api_key: key = '' } = await start(served, 'demo/0.1.0.1');
  const files = await served.files();
  const messages = [{ role: 'user', content: '?' }];
  const isOver = { status: 409, told: expect.stringContaining('its session takes a reward, and no calls') };
  const wrong = { reward: 1, interaction_id: 'chatcmpl-1' };
  expect(await post(served, '/rl/set_reward', 'sk-sess-wrong', { reward: 1 })).toMatchObject({ status: 401 });
  expect(await post(served, '/rl/set_reward', key, wrong)).toMatchObject({
    status: 422,
    told: expect.stringContaining('interaction_id must be null (the reward is that of the whole attempt)'),
  });
  expect(await post(served, '/rl/set_reward', key, { reward: 'good' })).toMatchObject({
    status: 422,
    told: expect.stringContaining('the reward must be a finite number, got "good"'),
  });
  expect(await post(served, '/chat/completions', key, { messages })).toEqual(isOver);
  expect(await post(served, '/responses', key, { input: '?' })).toEqual(isOver);
  expect(await post(served, '/v1/messages', key, { messages })).toEqual(isOver);
  expect(await start(served, 'a task')).toMatchObject({ status: 422, error: { code: 'invalid_value' } });
  expect(await start(served, 'other/0.1.0.1')).toMatchObject({ status: 404, error: { code: 'unknown_run' } });
  expect(await start(served, 'demo/0.1.0.3')).toMatchObject({ status: 409, error: { code: 'decided' } });
  expect(await start(served, 'demo/0.1.7.0')).toMatchObject({ status: 404, error: { code: 'unknown_attempt' } });
  expect(await served.files()).toEqual(files);
});
