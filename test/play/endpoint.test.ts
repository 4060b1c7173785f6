/** Attempts that a server of the user's plays. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';

import type { Scenario } from '../../play/agent.ts';
import { endpoint, external, resource } from '../../sdk/index.ts';
import { markOf, playOne, type PlayOptions } from './play.ts';
import { ROLLOUT } from './program-script.ts';
import { sharedEngine } from './shared-engine.ts';

const engine = await sharedEngine();

interface Told {
  baseURL: string;
  apiKey: string;
  model: string;
  scenario: Scenario;
  resources?: { desk: { port: number } };
}

/** A server of the user's that answers as it is told. */
async function serve(answer: (told: Told) => Promise<string>, status = 200): Promise<string> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => void answer(JSON.parse(body)).then((text) => response.writeHead(status).end(text)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/rollout`;
}

const post = ({ baseURL, apiKey }: Told, path: string, body: string) =>
  fetch(baseURL.replace('/v1', path), { method: 'POST', headers: { authorization: `Bearer ${apiKey}` }, body });

test('an endpoint is told the attempt, calls the model, and answers with the reward', async () => {
  const url = await serve(async (told) => {
    const { model, scenario } = told;
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: scenario.id }] });
    const answer = await post(told, '/v1/chat/completions', body);
    const { choices } = (await answer.json()) as OpenAI.ChatCompletion;
    return `{"reward": ${choices[0]!.message.content}}`;
  });
  const attempt = await playOne(engine, endpoint(url));
  expect(attempt.reward).toBe(Number(attempt.calls[0]?.message.content));
});

test('an endpoint is told what the resources of the attempt are, and nothing of them without any', async () => {
  const desk = resource({ scope: 'attempt', setup: () => ({ port: 4217 }), teardown: () => undefined });
  const url = await serve(async ({ resources }) => `{"reward": ${resources?.desk.port ?? 0}}`);
  expect((await playOne(engine, endpoint(url), { needs: { desk } })).reward).toBe(4217);
  expect((await playOne(engine, endpoint(url))).reward).toBe(0);
});

test('the key that calls the model gives no reward to an endpoint that tells its own, or that others reward', async () => {
  const url = await serve(async (told) => {
    await post(told, '/attempt/result', '1');
    return told.scenario.id === 'told' ? '{"reward": 0.25}' : '{"status": "played"}';
  });
  const play = (id: string, more: PlayOptions = {}) =>
    playOne(engine, endpoint(url), { scenario: { id }, rollout: ROLLOUT, ...more });
  expect(await play('told')).toMatchObject({ status: 'ok', reward: 0.25 });
  expect(await play('posted')).toMatchObject({ status: 'ok', reward: 1 });
  expect((await play('posted', { graded: { reward: external() } })).status).toBe('failed');
});

test.each([
  [500, 'it threw', /answered 500: it threw/],
  [200, 'fine', /the answer of .* must be JSON, got "fine"/],
  [200, '', /gave no reward/],
])('an endpoint that answers %d with %j has failed, as data', async (status, body, message) => {
  const attempt = await playOne(engine, endpoint(await serve(async () => body, status)));
  expect(attempt.failure?.message).toMatch(message);
});

test('an endpoint that is away or overloaded is an outage', async () => {
  const busy = await serve(async () => 'later', 503);
  expect(await markOf(playOne(engine, endpoint(busy)))).toMatchObject({ type: 'ProgramFailed' });
  expect((await markOf(playOne(engine, endpoint('http://127.0.0.1:9/rollout')))).message).toMatch(/ECONNREFUSED/);
});

test('an endpoint that does not answer is left when the attempt’s time is over', async () => {
  const url = await serve(() => new Promise(() => undefined));
  const attempt = await playOne(engine, endpoint(url), { rollout: { attemptTimeoutMs: 100 } });
  expect(attempt.failure?.message).toContain('attemptTimeoutMs');
});
