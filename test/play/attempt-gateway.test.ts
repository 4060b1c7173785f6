/** Attempts whose rollout gives the model's address to another process. */
import type OpenAI from 'openai';
import { expect, test } from 'vitest';

import type { RolloutContext } from '../../play/agent.ts';
import { markOf, playOne } from './play.ts';
import { ROLLOUT } from './program-script.ts';
import { sharedEngine } from './shared-engine.ts';

const engine = await sharedEngine();

type Address = Awaited<ReturnType<RolloutContext['gateway']>>;

const post = ({ baseURL, apiKey }: Address, path: string, body: object | number) =>
  fetch(`${baseURL}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify(body),
  });

async function ask(address: Address, content: string): Promise<number> {
  const answer = await post(address, '/chat/completions', { model: 'any', messages: [{ role: 'user', content }] });
  const { choices } = (await answer.json()) as OpenAI.ChatCompletion;
  return Number(choices[0]!.message.content);
}

test('a process that the rollout gives the gateway calls the policy, recorded', async () => {
  const attempt = await playOne(engine, async ({ gateway, scenario }) => ask(await gateway(), scenario.id));
  expect(attempt.reward).toBe(Number(attempt.calls[0]?.message.content));
});

test('Anthropic’s clients, which add /v1 themselves, take the same address', async () => {
  const attempt = await playOne(engine, async ({ gateway }) => {
    const body = { model: 'any', max_tokens: 8, messages: [{ role: 'user', content: 'go' }] };
    return { reward: (await post(await gateway(), '/v1/messages', body)).status === 200 ? 1 : 0 };
  });
  expect([attempt.reward, attempt.calls.length]).toEqual([1, 1]);
});

test('`rewrite` changes what the process asks before it is recorded', async () => {
  const attempt = await playOne(engine, async ({ gateway }) => {
    const rewrite = (request: { messages: { role: string; content?: unknown }[] }) => ({
      ...request,
      messages: request.messages.map((message) => ({ ...message, content: 'the date' })),
    });
    return ask(await gateway({ rewrite }), new Date().toISOString());
  });
  expect(attempt.calls[0]?.request.messages).toEqual([{ role: 'user', content: 'the date' }]);
});

test('the key gives no reward, and ends with the attempt', async () => {
  let address: Address | null = null;
  const attempt = await playOne(
    engine,
    async ({ gateway }) => {
      address = await gateway();
      return {
        reward: (await post(address, '/attempt/result', 1).catch(() => ({ status: 0 }))).status === 204 ? 1 : 0,
      };
    },
    { rollout: ROLLOUT },
  );
  expect(attempt.reward).toBe(0);
  expect((await post(address!, '/chat/completions', {})).status).toBe(401);
});

test('an engine that is away while another process asks discards the attempt', async () => {
  engine.failWhen(() => ({ status: 503 }));
  const mark = await markOf(
    playOne(engine, async ({ gateway }) => ask(await gateway(), 'go'), { rollout: { callRetryBudgetMs: 0 } }),
  );
  expect(mark).toMatchObject({ type: 'EngineFailed' });
});
