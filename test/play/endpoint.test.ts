/** Attempts that a server of the user's plays. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';

import { endpoint, resource } from '../../sdk/index.ts';
import { markOf, playOne } from './play.ts';
import { sharedEngine } from './shared-engine.ts';

const engine = await sharedEngine();

describe('an endpoint', () => {
  /** A server of the user's that answers as it is told. */
  async function serve(
    answer: (told: Record<string, unknown>) => Promise<[status: number, body: string]>,
  ): Promise<string> {
    const server: Server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => {
        void answer(JSON.parse(body)).then(([status, text]) => response.writeHead(status).end(text));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/rollout`;
  }

  test('is told the attempt, calls the model, and answers with the reward', async () => {
    const url = await serve(async ({ baseURL, apiKey, model, scenario }) => {
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: (scenario as { id: string }).id }] });
      const headers = { authorization: `Bearer ${String(apiKey)}` };
      const response = await fetch(`${String(baseURL)}/chat/completions`, { method: 'POST', headers, body });
      const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
      return [200, `{"reward": ${choices[0]!.message.content}}`];
    });
    const attempt = await playOne(engine, endpoint(url));
    expect(attempt.reward).toBe(Number(attempt.calls[0]?.message.content));
  });

  test('is told what the resources of the attempt are, and nothing of them without any', async () => {
    const desk = resource({ scope: 'attempt', setup: () => ({ port: 4217 }), teardown: () => undefined });
    const url = await serve(({ resources }) =>
      Promise.resolve([200, `{"reward": ${(resources as { desk: { port: number } } | undefined)?.desk.port ?? 0}}`]),
    );
    expect((await playOne(engine, endpoint(url), { needs: { desk } })).reward).toBe(4217);
    expect((await playOne(engine, endpoint(url))).reward).toBe(0);
  });

  test.each([
    [500, 'it threw', /answered 500: it threw/],
    [200, 'fine', /the answer of .* must be JSON, got "fine"/],
    [200, '', /gave no reward/],
  ])('that answers %d with %j has failed, as data', async (status, body, message) => {
    const attempt = await playOne(engine, endpoint(await serve(() => Promise.resolve([status, body]))));
    expect(attempt.failure?.message).toMatch(message);
  });

  test('that is away or overloaded is an outage', async () => {
    const busy = await serve(() => Promise.resolve([503, 'later']));
    expect(await markOf(playOne(engine, endpoint(busy)))).toMatchObject({ type: 'ProgramFailed' });
    expect((await markOf(playOne(engine, endpoint('http://127.0.0.1:9/rollout')))).message).toMatch(/ECONNREFUSED/);
  });

  test('that answers another attempt’s time is left when that is over', async () => {
    const url = await serve(() => new Promise(() => undefined));
    const attempt = await playOne(engine, endpoint(url), { rollout: { attemptTimeoutMs: 100 } });
    expect(attempt.failure?.message).toContain('attemptTimeoutMs');
  });
});
