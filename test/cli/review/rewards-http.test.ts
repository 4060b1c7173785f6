/** Rewards over HTTP: what is given, and that what is refused changes nothing. */
import { expect, test } from 'vitest';
import { closeLedger, readGiven } from '../../../store/records/rewards/given-rewards.ts';
import { KEY, serveReview } from './served.ts';

const GROUP = { run: 'demo', branch: 0, step: 1, group: 0 };

/** Status and words of a refusal as JSON. */
function told({ status, text }: { status: number; text: string }): string {
  const { error } = JSON.parse(text) as { error: { message: string; code: string } };
  expect(error.message).not.toContain('\n');
  return `${status} ${error.code}: ${error.message.replaceAll(/\d{4}-[\dT:.-]*Z/g, 'TIME')}`;
}

test('a reward is stored with its author, and the run is woken once its group is complete', async () => {
  const served = await serveReview();
  const body = { reward: 0.7, metrics: { tone: 1 }, by: 'ann', note: 'late, but kind', idempotencyKey: 'ticket-1' };
  const answer = await served.give('0.1.0.0', body);
  expect([answer.status, JSON.parse(answer.text)]).toEqual([
    200,
    { run: 'demo', attempt: '0.1.0.0', reward: 0.7, outcome: 'given' },
  ]);
  expect(await readGiven(served.store, GROUP)).toEqual([
    {
      schema: 1,
      kind: 'reward',
      attempt: 0,
      reward: 0.7,
      metrics: { tone: 1 },
      by: 'ann',
      note: 'late, but kind',
      at: expect.any(String),
      key: 'ticket-1',
    },
  ]);
  await served.give('0.1.0.1', { reward: 0 }, { 'idempotency-key': 'ticket-2' });
  expect(served.woken).toEqual([]);
  await served.give('0.1.0.2', { reward: 1 });
  expect(served.woken).toEqual(['demo']);
  expect(await readGiven(served.store, GROUP)).toMatchObject([{ key: 'ticket-1' }, { key: 'ticket-2' }, { key: null }]);
});

test('the same reward again adds nothing, and another value takes its place', async () => {
  const served = await serveReview();
  await served.give('0.1.0.0', { reward: 0.7 });
  await served.give('0.1.0.1', { reward: 0.2 }, { 'idempotency-key': 'k' });
  const files = await served.files();
  for (const [attempt, reward, headers] of [
    ['0.1.0.0', 0.7, {}],
    ['0.1.0.1', 0.2, { 'idempotency-key': 'k' }],
  ] as const) {
    const { status, text } = await served.give(attempt, { reward }, headers);
    expect([status, JSON.parse(text)]).toEqual([200, { run: 'demo', attempt, reward, outcome: 'same' }]);
  }
  expect(await served.files()).toEqual(files);
  expect((await served.give('0.1.0.0', { reward: 0.9 })).status).toBe(200);
  expect(await readGiven(served.store, GROUP)).toHaveLength(3);
});

test('what cannot be is refused in one line, and nothing changes', async () => {
  const served = await serveReview();
  await served.give('0.1.0.0', { reward: 0.7 }, { 'idempotency-key': 'k' });
  await served.give('0.1.1.0', { reward: 0.5 });
  await closeLedger(served.store, { ...GROUP, group: 1 }, 'complete');
  const files = await served.files();
  const one = '/v1/runs/demo/attempts/0.1.0.1/reward';
  const give = async (attempt: string, body: object | string, headers = {}) =>
    told(await served.give(attempt, body, headers));
  const ask = async (...request: Parameters<typeof served.ask>) => told(await served.ask(...request));
  expect(await ask('POST', one, '{"reward": 1}', {})).toContain('401 invalid_api_key: the key');
  expect(await ask('POST', one, '{"reward": 1}', { authorization: 'Bearer wrong' })).toContain('401 invalid_api_key');
  expect(await ask('POST', one, '{"reward": 1}', { authorization: `Bearer ${KEY}`, host: 'evil.example' })).toContain(
    '403 host',
  );
  expect(await ask('POST', '/v1/runs/other/attempts/0.1.0.1/reward', '{"reward": 1}')).toContain('404 unknown_run');
  expect(await ask('POST', '/v1/runs/..%2F..%2Fdemo/attempts/0.1.0.1/reward', '{"reward": 1}')).toContain(
    '404 unknown_run',
  );
  expect(await give('0.1.7.1', { reward: 1 })).toContain('404 unknown_attempt: the run demo has played no attempt');
  expect(await give('first', { reward: 1 })).toContain('404 bad_attempt: an attempt must be named');
  expect(await give('0.1.0.3', { reward: 1 })).toContain('409 failed_attempt: the attempt 0.1.0.3 failed and is not');
  expect(await give('0.1.0.1', '{"reward": NaN}')).toContain('422 invalid_value: numbers must be finite');
  expect(await give('0.1.0.1', '{"reward": 1e999}')).toContain('422 bad_value: the reward must be a finite number');
  expect(await give('0.1.0.1', { reward: '1' })).toContain('422 bad_value: the reward must be a finite number');
  expect(await give('0.1.0.1', { metrics: { tone: 1 } })).toContain('422 bad_value: the reward must be a finite');
  expect(await give('0.1.0.1', { reward: 1, metrics: { tone: 'kind' } })).toContain('422 bad_value: the metric tone');
  expect(await give('0.1.0.1', { reward: 1, author: 'ann' })).toContain('422 invalid_value: a body may have');
  expect(await give('0.1.0.1', { reward: 1, by: 7 })).toContain('422 bad_value: by must be a text of 1 to 200');
  expect(await give('0.1.0.1', [1])).toContain('422 invalid_value: a body must be a JSON object, such as {"reward"');
  expect(await give('0.1.0.1', 'reward=1')).toContain('400 invalid_json: a body must be JSON, got "reward=1"');
  expect(await give('0.1.0.0', { reward: 0.8 }, { 'idempotency-key': 'k' })).toContain('409 key_reused');
  expect(await give('0.1.0.1', { reward: 0.7 }, { 'idempotency-key': 'k' })).toContain('409 key_reused');
  expect(await give('0.1.0.1', { reward: 1, idempotencyKey: 'a' }, { 'idempotency-key': 'b' })).toContain(
    '422 invalid_value',
  );
  expect(await give('0.1.1.0', { reward: 1 })).toContain('409 decided: a reward must be given before');
  expect(await give('0.1.1.1', { reward: 1 })).toContain('409 decided: a reward must be given before');
  expect(await give('0.1.0.1', { reward: 1, note: 'x'.repeat(300_000) })).toContain('413 too_large: a request may');
  expect(await ask('PUT', one, '{"reward": 1}')).toContain('405 method: this address must be requested with POST, not');
  expect(await ask('GET', '/v1/runs')).toContain('404 not_found: no endpoint /v1/runs; see temper review --help');
  expect(await served.files()).toEqual(files);
  expect(served.woken).toEqual([]);
});

test('a reward that was given before the decision is the same again after it', async () => {
  const served = await serveReview();
  await served.give('0.1.0.0', { reward: 0.7 });
  await closeLedger(served.store, GROUP, 'timeout');
  const { status, text } = await served.give('0.1.0.0', { reward: 0.7 });
  expect([status, JSON.parse(text)]).toMatchObject([200, { outcome: 'same' }]);
  expect(served.woken).toEqual([]);
});

test('what is awaited is listed as temper rewards --json prints it', async () => {
  const served = await serveReview();
  await served.give('0.1.0.0', { reward: 0.7 });
  const { status, text } = await served.ask('GET', '/v1/runs/demo/rewards');
  expect([status, JSON.parse(text)]).toMatchObject([200, expect.anything()]);
  expect(text).toContain('0.1.0.1');
  expect(text).not.toContain('0.1.0.0');
});

test('says that it lives to anybody, and answers pages of other sites nothing', async () => {
  const served = await serveReview();
  expect(await served.ask('GET', '/health', null, {})).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  const { status, headers } = await served.ask('OPTIONS', '/v1/runs/demo/rewards', null, {
    origin: 'https://evil.example',
  });
  expect([status, Object.keys(headers).filter((name) => name.startsWith('access-control'))]).toEqual([405, []]);
});
