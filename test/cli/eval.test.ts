import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { EvaluationView } from '../../views/api/evaluation-view.ts';
import type { EvalSummary } from '../../cli/eval/summarise.ts';
import { sdkImports, write } from './agents.ts';
import { runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

let project: string;

beforeEach(async () => {
  project = temporaryFolder();
  await write(join(project, 'package.json'), '{"type":"module"}');
  await write(
    join(project, 'agent.ts'),
    `${sdkImports('defineAgent')}
export default defineAgent({
  name: 'echo',
  scenarios: [{ id: 'never-played' }],
  evalScenarios: ['a', 'b', 'c', 'd'].map((id) => ({ id })),
  async rollout({ scenario, openai, model }) {
    const { choices } = await openai.chat.completions.create({ model, messages: [{ role: 'user', content: scenario.id }], max_tokens: 7 });
    const answer = choices[0]?.message.content;
    if (answer === 'boom') throw new Error('cannot bear it');
    return { reward: answer === 'A' ? 1 : 0, metrics: { right: answer === 'A' } };
  },
});
`,
  );
});

interface Asked {
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly body: Record<string, unknown> & { model: string; messages: { content: string }[] };
}

type Answer = { content: string; usage?: object } | { status: number; error: object };

const inCapitals = ({ body }: Asked): Answer => ({ content: body.messages[0]!.content.toUpperCase() });

/** A server elsewhere: knows nothing of tokens, answers the question in capitals, or as it is told. */
async function startServer(answer: (asked: Asked) => Answer = inCapitals) {
  const asked: Asked[] = [];
  const serve = (request: IncomingMessage, response: ServerResponse, text: string): void => {
    const { url, headers } = request;
    const body = JSON.parse(text) as Asked['body'];
    asked.push({ url, authorization: headers.authorization, body });
    const answered = answer(asked.at(-1)!);
    response.setHeader('content-type', 'application/json');
    if ('status' in answered) {
      response.statusCode = answered.status;
      response.end(JSON.stringify({ error: answered.error }));
      return;
    }
    const { content, usage } = answered;
    const message = { role: 'assistant', content };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model: body.model, choices, usage }));
  };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => serve(request, response, text));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}

test('--seed changes what an agent draws, also where a hosted model plays', async () => {
  const { url, asked } = await startServer();
  const agent = await readFile(join(project, 'agent.ts'), 'utf8');
  const drawing = agent
    .replace('{ scenario, openai, model }', '{ scenario, openai, model, random }')
    .replace('content: scenario.id', "content: scenario.id + ' ' + random()");
  await write(join(project, 'agent.ts'), drawing);
  const play = async (seed: string) => {
    const args = ['eval', 'agent.ts', '--model', 'some-model', '--base-url', url, '--seed', seed];
    expect((await runCli(project, args)).exitCode).toBe(0);
    return asked
      .splice(0)
      .map(({ body }) => body.messages[0]!.content)
      .toSorted();
  };
  const [first, again, other] = [await play('1'), await play('1'), await play('2')];
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
});

test('any OpenAI-compatible server plays the held-out scenarios', async () => {
  const { url, asked } = await startServer();
  const args = ['eval', 'agent.ts', '--model', 'some-model', '--base-url', url, '--key-env', 'SOME_KEY'];
  const { exitCode, stdout } = await runCli(project, args, { env: { SOME_KEY: 'secret' } });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(
    /^echo: 4 scenarios\n +some-model\nreward +0.250 \(-0.240 to 0.740\)\nright +0.250 \(0.046 to 0.699\)$/m,
  );
  expect(stdout).toMatch(/report: .temper\/reports\/eval-echo.html$/);
  expect(asked).toHaveLength(4);
  expect(asked[0]).toMatchObject({
    url: '/v1/chat/completions',
    authorization: 'Bearer secret',
    body: { model: 'some-model', max_tokens: 7 },
  });
  expect(asked[0]!.body).not.toHaveProperty('temperature');
});

test('models side by side play the same scenarios: rewards, tokens, money, and the difference from the first', async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 10 };
  const { url, asked } = await startServer((call) => {
    const isGood = call.body.model === 'good';
    return { content: isGood || call.body.messages[0]!.content === 'a' ? 'A' : 'no', usage };
  });
  const env = { OPENAI_API_KEY: 'secret', OPENAI_BASE_URL: url };
  const models = ['--model', `${url}#bad`, '--model', 'openai/good', '--price', 'openai/good=2/30'];
  const { exitCode, stdout } = await runCli(project, ['eval', 'agent.ts', ...models], { env });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/ http:\/\/127\.0\.0\.1:\d+\/v1#bad +openai\/good$/m);
  for (const row of [
    /^reward vs. first model +– +0.750 \(0.260 to 1.240\)$/m,
    /^right +0.250 \(0.046 to 0.699\) +1.000 \(0.510 to 1.000\)$/m,
    /^input tokens +100 \(100 to 100\) +100 \(100 to 100\)$/m,
    /^output tokens +10 \(10 to 10\) +10 \(10 to 10\)$/m,
    /^US dollars +– +5.0e-4 \(5.0e-4 to 5.0e-4\)$/m,
    /^openai\/good cost 0.002 US dollars in all$/m,
  ])
    expect(stdout).toMatch(row);
  const played = (model: string) => asked.filter(({ body }) => body.model === model);
  const questions = (model: string) => played(model).map(({ body }) => body.messages[0]!.content);
  expect(questions('good').toSorted()).toEqual(questions('bad').toSorted());
  expect(played('bad')[0]?.authorization).toBeUndefined();
  expect(played('good')[0]).toMatchObject({ authorization: 'Bearer secret', body: { max_completion_tokens: 7 } });
});

test('--json prints means and intervals, --scenarios plays fewer', async () => {
  const { url } = await startServer();
  const args = ['eval', 'agent.ts', '--model', 'm', '--base-url', url, '--scenarios', '2', '--json'];
  const { stdout } = await runCli(project, args);
  const { models, scenarios } = JSON.parse(stdout) as EvalSummary;
  expect(scenarios).toBe(2);
  expect(models).toHaveLength(1);
  expect(models[0]).toMatchObject({ attempts: 2, reward: { mean: 0.5 }, metrics: { rightRate: { mean: 0.5 } } });
  expect(models[0]).toMatchObject({ promptTokens: null, costUsd: null, totalCostUsd: null, error: null });
  expect(models[0]!.metrics['rightRate']!.low).toBeGreaterThan(0);
  expect(models[0]!.metrics['rightRate']!.high).toBeLessThan(1);
});

test('what a person says of temperature and limits goes to a hosted model', async () => {
  const { url, asked } = await startServer();
  const flags = ['--temperature', '0.3', '--max-tokens', '900', '--scenarios', '1'];
  await runCli(project, ['eval', 'agent.ts', '--model', `${url}#m`, ...flags]);
  expect(asked[0]!.body).toMatchObject({ temperature: 0.3, max_tokens: 900 });
});

test('an API’s base is taken as it stands', async () => {
  const { url, asked } = await startServer();
  const env = { GEMINI_API_KEY: 'k', GEMINI_BASE_URL: url.replace('/v1', '/v1beta/openai/') };
  await runCli(project, ['eval', 'agent.ts', '--model', 'gemini/flash', '--scenarios', '1'], { env });
  expect(asked.map((call) => call.url)).toEqual(['/v1beta/openai/chat/completions']);
});

test('OpenRouter’s own account of the cost is believed', async () => {
  const { url } = await startServer(() => ({ content: 'A', usage: { cost: 0.25 } }));
  const env = { OPENROUTER_API_KEY: 'k', OPENROUTER_BASE_URL: url };
  const { stdout } = await runCli(project, ['eval', 'agent.ts', '--model', 'openrouter/a/b', '--json'], { env });
  const { models } = JSON.parse(stdout) as EvalSummary;
  expect(models[0]).toMatchObject({ costUsd: { mean: 0.25 }, totalCostUsd: 1, promptTokens: null });
});

test('the page shows every model’s attempt at a scenario, side by side', async () => {
  const { url } = await startServer();
  const models = ['--model', `${url}#one`, '--model', `${url}#two`];
  const { stdout } = await runCli(project, ['eval', 'agent.ts', ...models, '--out', 'pages/it.html']);
  expect(stdout).toContain('report: pages/it.html');
  const page = await readFile(join(project, 'pages', 'it.html'), 'utf8');
  const { answers } = JSON.parse(/<script type="application\/json" id="answers">(.*?)<\/script>/s.exec(page)![1]!) as {
    answers: { evaluation: EvaluationView };
  };
  const { measures, groups } = answers.evaluation;
  expect(measures.length).toBeGreaterThan(2);
  const [first] = groups;
  expect(first!.title).toBe('a');
  expect(first!.attempts.map(({ title }) => title)).toEqual([`${url}#one`, `${url}#two`]);
  expect(first!.attempts[0]!.turns[0]!.answer.text).toBe('A');
});

describe('what goes wrong', () => {
  test('an evaluation of which every attempt fails has failed, with the first reason', async () => {
    const { url } = await startServer(() => ({ content: 'boom' }));
    const { exitCode, stderr } = await runCli(project, ['eval', 'agent.ts', '--model', 'm', '--base-url', url]);
    expect(exitCode).toBe(1);
    expect(stderr).toBe('temper: all 4 attempts failed, the first with: Error: cannot bear it');
  });

  test('one model that cannot be played does not lose what the others have cost', async () => {
    const { url } = await startServer((call) =>
      call.body.model === 'locked' ? { status: 401, error: { message: 'bad key' } } : { content: 'A' },
    );
    const env = { GROQ_API_KEY: 'wrong', GROQ_BASE_URL: url };
    const models = ['--model', 'groq/locked', '--model', `${url}#open`];
    const { exitCode, stdout, stderr } = await runCli(project, ['eval', 'agent.ts', ...models], { env });
    expect(exitCode).toBe(1);
    expect(stdout).toContain('groq/locked was not evaluated: ');
    expect(stdout).toMatch(/^reward +– +1\.000/m);
    expect(stderr).toContain('refused with 401: bad key; set GROQ_API_KEY to a key that it accepts');
  });

  test('an account without credit is not waited for', async () => {
    const { url, asked } = await startServer(() => ({
      status: 429,
      error: { code: 'insufficient_quota', message: 'empty' },
    }));
    const args = ['eval', 'agent.ts', '--model', `${url}#m`, '--scenarios', '1'];
    const { exitCode, stderr } = await runCli(project, args);
    expect({ exitCode, asked: asked.length }).toEqual({ exitCode: 2, asked: 1 });
    expect(stderr).toContain('refused with 429: empty; add credit to the account');
  });
});
