import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { write } from './agents.ts';
import { temporaryFolder } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

const SDK = new URL('../../sdk/index.ts', import.meta.url).href;

let project: string;

beforeEach(async () => {
  project = await temporaryFolder();
  await write(join(project, 'package.json'), '{"type":"module"}');
  await write(
    join(project, 'agent.ts'),
    `import { defineAgent } from '${SDK}';
export default defineAgent({
  name: 'echo',
  scenarios: [{ id: 'never-played' }],
  evalScenarios: ['a', 'b', 'c', 'd'].map((id) => ({ id })),
  async rollout({ scenario, openai, model }) {
    const { choices } = await openai.chat.completions.create({ model, messages: [{ role: 'user', content: scenario.id }] });
    const answer = choices[0]?.message.content;
    if (answer === 'boom') throw new Error('cannot bear it');
    return { reward: answer === 'A' ? 1 : 0, metrics: { right: answer === 'A' } };
  },
});
`,
  );
});

/** A server elsewhere: knows nothing of tokens, answers the question in capitals, or always the same. */
async function startServer(answer: string | null = null) {
  const asked: { model: string; authorization: string | undefined }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { model, messages } = JSON.parse(body) as { model: string; messages: { content: string }[] };
      asked.push({ model, authorization: request.headers.authorization });
      const message = { role: 'assistant', content: answer ?? messages[0]!.content.toUpperCase() };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          id: 'x',
          object: 'chat.completion',
          model,
          choices: [{ index: 0, message, finish_reason: 'stop' }],
        }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}

test('any OpenAI-compatible server plays the held-out scenarios', async () => {
  const { url, asked } = await startServer();
  const args = ['eval', 'agent.ts', '--model', 'some-model', '--base-url', url, '--key-env', 'SOME_KEY'];
  const { exitCode, stdout } = await runCli(project, args, { env: { SOME_KEY: 'secret' } });
  expect(exitCode).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "some-model: 4 scenarios
      reward  0.250  (-0.240 to 0.740)
      right   0.250  (0.046 to 0.699)
    95 % intervals in brackets"
  `);
  expect(asked).toHaveLength(4);
  expect(asked[0]).toEqual({ model: 'some-model', authorization: 'Bearer secret' });
});

test('--json prints means and intervals, --scenarios plays fewer', async () => {
  const { url } = await startServer();
  const args = ['eval', 'agent.ts', '--model', 'm', '--base-url', url, '--scenarios', '2', '--json'];
  const { stdout } = await runCli(project, args);
  const shown = JSON.parse(stdout) as {
    attempts: number;
    reward: { mean: number };
    metrics: { rightRate: { low: number; high: number } };
  };
  expect(shown).toMatchObject({ attempts: 2, reward: { mean: 0.5 }, metrics: { rightRate: { mean: 0.5 } } });
  expect(shown.metrics.rightRate.low).toBeGreaterThan(0);
  expect(shown.metrics.rightRate.high).toBeLessThan(1);
});

test('an evaluation of which every attempt fails has failed, with the first reason', async () => {
  const { url } = await startServer('boom');
  const { exitCode, stderr } = await runCli(project, ['eval', 'agent.ts', '--model', 'm', '--base-url', url]);
  expect(exitCode).toBe(1);
  expect(stderr).toBe('temper: all 4 attempts failed, the first with: Error: cannot bear it');
});
