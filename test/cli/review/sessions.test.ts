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
  expect([
    await post(served, '/rl/set_reward', 'sk-sess-wrong', { reward: 1 }),
    await post(served, '/rl/set_reward', key, { reward: 1, interaction_id: 'chatcmpl-1' }),
    await post(served, '/rl/set_reward', key, { reward: 'good' }),
    await post(served, '/chat/completions', key, { messages }),
    await post(served, '/responses', key, { input: '?' }),
    await post(served, '/v1/messages', key, { messages }),
    await start(served, 'a task'),
    await start(served, 'other/0.1.0.1'),
    await start(served, 'demo/0.1.0.3'),
    await start(served, 'demo/0.1.7.0'),
  ]).toMatchInlineSnapshot(`
    [
      {
        "status": 401,
        "told": "the key must be the api_key that /rl/start_session answered; send it as "Authorization: Bearer KEY"",
      },
      {
        "status": 422,
        "told": "interaction_id must be null (the reward is that of the whole attempt), got the id of a call; leave it out",
      },
      {
        "status": 422,
        "told": "the reward must be a finite number, got "good"; give one (attempt 0.1.0.1)",
      },
      {
        "status": 409,
        "told": "the attempt 0.1.0.1 of demo has been played: its session takes a reward, and no calls; ask a model that temper serve serves",
      },
      {
        "status": 409,
        "told": "the attempt 0.1.0.1 of demo has been played: its session takes a reward, and no calls; ask a model that temper serve serves",
      },
      {
        "status": 409,
        "told": "the attempt 0.1.0.1 of demo has been played: its session takes a reward, and no calls; ask a model that temper serve serves",
      },
      {
        "error": {
          "code": "invalid_value",
          "message": "task_id must be RUN/ATTEMPT, such as demo/0.3.2.5, got "a task"; see temper rewards",
          "param": null,
          "type": "invalid_request_error",
        },
        "status": 422,
      },
      {
        "error": {
          "code": "unknown_run",
          "message": "no run "other" in this store; see temper runs",
          "param": null,
          "type": "invalid_request_error",
        },
        "status": 404,
      },
      {
        "error": {
          "code": "decided",
          "message": "the attempt 0.1.0.3 failed and is not trained, so it takes no reward; leave it out",
          "param": null,
          "type": "invalid_request_error",
        },
        "status": 409,
      },
      {
        "error": {
          "code": "unknown_attempt",
          "message": "the run demo has played no attempt 0.1.7.0; see temper rewards demo",
          "param": null,
          "type": "invalid_request_error",
        },
        "status": 404,
      },
    ]
  `);
  expect(await served.files()).toEqual(files);
});
