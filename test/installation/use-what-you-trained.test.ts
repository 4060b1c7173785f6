/** All of docs/use-what-you-trained.md, on the run `demo` of an installation: its commands, its code, its tokens. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { parsePolicyName } from '../../core/names/policy-name.ts';
import { callSeed } from '../../core/numbers/seeds.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readEvalRollouts, requireRun } from '../../store/records/runs/run-reader.ts';
import type { CallRecord } from '../../store/records/groups/trajectories.ts';
import { blocksOf } from '../docs/markdown.ts';
import { openTools } from '../run/tools.ts';
import { freePort } from '../free-port.ts';
import { ProjectFolder, linesOf, succeed, type Command } from '../stack.ts';
import { until } from '../until.ts';
import { DEMO, engineOf, SMALL, TEMPER } from './installation.ts';
import { fileOf, SCRIPTS, SERVED_PAGE as PAGE, titled } from './pages.ts';

const SERVE_KEY = 'a key of this test';
/** On the page. */
const PORT = '8018';
/** Programs that no test installs. */
const FOREIGN = /^(vllm|ollama|llama-server|mlx_lm\.server) |> Modelfile$/;
const CALLS = 8;

const commands = blocksOf(PAGE)
  .filter(({ info }) => info === 'sh')
  .flatMap(({ code }) => linesOf(code.replaceAll(/\\\n\s*/g, ' ')));
const startingWith = (text: string) => commands.filter((line) => line.startsWith(text));

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env: { ...env, TEMPER_SERVE_KEY: SERVE_KEY } });
const port = await freePort();
const serve = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: SERVE_KEY });
let serving: Command;
/** That `demo@best` means: after one step it may be the untrained one. */
const policy = () => (JSON.parse(serving.stdout()) as { model: string }).model;

beforeAll(async () => {
  await succeed(project.run(TEMPER, ...DEMO, ...SMALL));
  serving = await startServing();
});

// The test that ends `temper serve` may not be among those that run.
afterAll(() => project.endCommands());

/** The page's code, for a server on a port of this test. */
const atPort = (code: string): string => code.replaceAll(`127.0.0.1:${PORT}`, `127.0.0.1:${port}`);

/** The page's own line starts it. */
async function startServing(): Promise<Command> {
  const [line = ''] = startingWith('npx temper serve ');
  const shell = `exec ${line.replace('npx temper', TEMPER)} --port ${port} --json`;
  const command = project.start('sh', '-c', shell);
  let isOver = false;
  void command.ended.then(() => (isOver = true));
  await until('the policy is served', () => isOver || command.stdout().includes('"baseUrl"'));
  if (isOver) throw new Error((await command.ended).stderr);
  return command;
}

test(`${PAGE} has no command that is not run here, but those of other programs`, () => {
  const run = ['export TEMPER_SERVE_KEY', 'npx temper serve', 'curl', 'npx temper export'].flatMap(startingWith);
  expect(commands.filter((line) => !FOREIGN.test(line))).toEqual(run);
});

test.each(startingWith('npx temper export '))('%s', async (line) => {
  await succeed(project.run('sh', '-c', line));
});

test.runIf(spawnSync('curl', ['--version']).status === 0)('the page’s line for curl is answered', async () => {
  const [line = ''] = startingWith('curl ').map((each) => atPort(each));
  const { stdout, stderr } = await project.run('sh', '-c', line);
  expect(JSON.parse(stdout), stderr).toMatchObject({ object: 'chat.completion', model: policy() });
});

test.each(blocksOf(PAGE).filter(({ info }) => info === 'python'))('its Python at line $line runs', async ({ code }) => {
  const { python } = await openTools();
  const stdout = await succeed(project.run(python, '-c', code));
  expect(stdout.trim()).not.toBe('');
});

test.each(blocksOf(PAGE).filter(({ info }) => info === 'js'))(
  'its JavaScript at line $line prints what the policy answers',
  async ({ line, code }) => {
    const file = `use-${line}.mjs`;
    writeFileSync(join(folder, file), atPort(code));
    const stdout = await succeed(project.run('node', file));
    const messages = [{ role: 'user' as const, content: '1x34o6789' }];
    const { choices } = await serve.chat.completions.create({ model: 'demo', messages, temperature: 0 });
    expect(stdout.trim()).toBe(choices[0]?.message.content);
  },
);

test.each(titled(SCRIPTS.filter(({ page }) => page === PAGE)))('the script at $title', async ({ block }) => {
  const file = fileOf(block);
  writeFileSync(join(folder, file), atPort(block.code));
  const stdout = await succeed(project.run('node', '--import', 'temper-rl/typescript', file));
  expect(stdout.trim()).not.toBe('');
});

test('temper serve gives the tokens that the run’s evaluation got, seed for seed', async () => {
  for (const { call, seed } of await evaluatedCalls()) {
    const { messages, ...sampling } = call.request;
    const body = { ...sampling, messages, model: 'demo', seed, return_token_ids: true };
    expect(await tokensOf(serve, body)).toEqual([call.promptTokenIds, call.tokenIds]);
  }
});

test('greedy, temper serve, the engine that trained and the merged weights in transformers give the same tokens', async () => {
  const { engine, key } = engineOf(project);
  const trained = new OpenAI({ baseURL: `${engine}/v1`, apiKey: key });
  const served: [number[], number[]][] = [];
  for (const { call } of await evaluatedCalls()) {
    const body = { ...call.request, temperature: 0, return_token_ids: true };
    served.push(await tokensOf(serve, { ...body, model: 'demo' }));
    expect(await tokensOf(trained, { ...body, model: policy() })).toEqual(served.at(-1));
  }
  const { python } = await openTools();
  const merged = await succeed(project.run(python, '-c', GREEDY, './demo-model', JSON.stringify(served)));
  expect(JSON.parse(merged)).toEqual(served.map(([, tokens]) => tokens));
});

test('the official clients get what they ask for, from temper serve and from the GPU worker’s own server', async () => {
  const { engine, key } = engineOf(project);
  const places = {
    engine: { url: engine, apiKey: key, model: 'pocket' },
    serve: { url: `http://127.0.0.1:${port}`, apiKey: SERVE_KEY, model: 'demo' },
  };
  const line = ['node', '--import', 'temper-rl/typescript', 'clients.ts'];
  await succeed(project.run('env', `PLACES=${JSON.stringify(places)}`, ...line));
});

test('Ctrl-C ends temper serve and its engine, and its log holds no key', async () => {
  const log = readFileSync(project.path('logs', 'serve.jsonl'), 'utf8');
  const { port: enginePort } = project
    .lines<{ msg: string; port: number }>('logs/serve.jsonl')
    .find(({ msg }) => msg === 'ready')!;
  serving.interrupt();
  await succeed(serving.ended);
  for (const gone of [port, enginePort])
    await expect(fetch(`http://127.0.0.1:${gone}/health`)).rejects.toThrow('fetch failed');
  expect(log + (await serving.ended).output).not.toContain(SERVE_KEY);
});

/** First calls of attempts of a policy's evaluation, with the seeds that they were sampled with. */
async function evaluatedCalls(): Promise<{ call: CallRecord; seed: number }[]> {
  const store = await openStore(project.path('store'));
  const { file } = await requireRun(store, 'demo');
  const place = parsePolicyName(policy())!;
  const { attempts } = (await readEvalRollouts(store, place))!;
  const calls = attempts.slice(0, CALLS).flatMap(({ attempt, scenario, calls: [call] }) => {
    if (call === undefined || scenario === undefined) return [];
    const { key, occurrence } = call;
    const { seed } = file.config;
    return [{ call, seed: callSeed({ ...place, seed, scenario, attempt, key, occurrence }) }];
  });
  expect(calls.length).toBeGreaterThan(0);
  return calls;
}

async function tokensOf(client: OpenAI, body: object): Promise<[number[], number[]]> {
  const completion: unknown = await client.chat.completions.create(body as never);
  const { prompt_token_ids: prompt, choices } = completion as {
    prompt_token_ids: number[];
    choices: { token_ids: number[] }[];
  };
  return [prompt, choices[0]!.token_ids];
}

/** The likeliest tokens after each prompt, as many as were served. */
const GREEDY = `
import json, sys, torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
answers = []
for prompt, tokens in json.loads(sys.argv[2]):
    ids = list(prompt)
    for _ in tokens:
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    answers.append(ids[len(prompt):])
print(json.dumps(answers))
`;
