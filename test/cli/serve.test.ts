import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { serveCommand } from '../../cli/serve/command.ts';
import { servedLines } from '../../cli/serve/lines.ts';
import { planServe } from '../../cli/serve/plan-serve.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readManifest } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { until } from '../until.ts';
import { freePort } from '../free-port.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePython } from './fake-python.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf, runCli, settingsIn } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KEY = 'a key of this test';
const SAID = 'words of a user';
let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 2, evals: { 1: 0.75 } });
});

const complain = (words: string[], env: NodeJS.ProcessEnv = {}) => complaintIn(project, ['serve', ...words], { env });

const plan = (words: string, env: NodeJS.ProcessEnv, isTerminal: boolean) => {
  const context = contextOf(serveCommand, project, words.split(' '), env);
  return planServe({ ...context, output: { ...context.output, isTerminal } });
};

describe('key and host', () => {
  test('a new key is made for a terminal, and for nothing else', async () => {
    const [first, second] = [plan('demo', {}, true), plan('demo', {}, true)];
    expect(first).toMatchObject({ host: '127.0.0.1', port: 8018, isNewKey: true });
    expect(first.key).toMatch(/^[\w-]{43}$/);
    expect(second.key).not.toBe(first.key);
    expect(await complain(['demo@2'])).toContain('temper serve shows a new key on a terminal only');
    expect(() => plan('demo --json', {}, true)).toThrow('TEMPER_SERVE_KEY');
    expect(() => plan('demo', { TEMPER_SERVE_KEY: '' }, false)).toThrow('TEMPER_SERVE_KEY');
  });

  test('TEMPER_SERVE_KEY is the key, and is never shown', () => {
    const place = plan('demo --port 8099', { TEMPER_SERVE_KEY: KEY }, true);
    expect(place).toEqual({ host: '127.0.0.1', port: 8099, hosts: ['127.0.0.1'], key: KEY, isNewKey: false });
    const served = { ...place, policy: 'demo@2', models: ['demo@2', 'demo'], adapterSha256: '', recording: null };
    const lines = servedLines(served).join('\n');
    expect(lines).toContain(
      'base URL  http://127.0.0.1:8099/v1\nmodel     demo@2 or demo\nkey       in TEMPER_SERVE_KEY',
    );
    expect(lines).toContain(`-d '{"model":"demo@2","messages":[{"role":"user","content":"Hello"}]}'`);
    expect(lines).toContain("baseURL: 'http://127.0.0.1:8099/v1', apiKey: process.env.TEMPER_SERVE_KEY");
    expect(lines).not.toContain(KEY);
    const shown = servedLines({ ...served, isNewKey: true, key: 'new' }).filter((line) =>
      /\bnew(?! OpenAI)\b/.test(line),
    );
    expect(shown).toEqual([expect.stringContaining('new at each start'), 'export TEMPER_SERVE_KEY=new']);
  });

  test('an address that is open to other machines needs a key of the environment, and names of its own', async () => {
    expect(await complain(['demo', '--host', '10.0.0.5'])).toContain('and needs a key in TEMPER_SERVE_KEY');
    expect(await complain(['demo', '--host', '0.0.0.0'], { TEMPER_SERVE_KEY: KEY })).toContain(
      '--host 0.0.0.0 must come with --allow-host, otherwise requests from other machines are refused',
    );
    expect(await complain(['demo', '--host', 'a b'])).toContain('--host must be an address or a host name');
    const env = { TEMPER_SERVE_KEY: KEY };
    expect(plan('demo --host 10.0.0.5', env, false).hosts).toEqual(['10.0.0.5']);
    expect(plan('demo --host :: --allow-host gpu-1 --allow-host b', env, false).hosts).toEqual(['gpu-1', 'b']);
    expect(plan('demo --host 127.0.0.2', {}, true).isNewKey).toBe(true);
  });
});

describe('what is wrong is told before anything is started', () => {
  const env = { TEMPER_SERVE_KEY: KEY, TEMPER_PYTHON: '/no/such/python' };

  test('a checkpoint that is none, or whose weights are gone', async () => {
    expect(await complain(['demo@9'], env)).toContain('demo@9 is not committed');
    await makeRun(store, { run: 'pruned', steps: 5 });
    await runCli(project, ['checkpoints', 'prune', 'pruned', '--keep-last', '1']);
    expect(await complain(['pruned@1'], env)).toContain('pull pruned STORE --with-pruned');
  });

  test('a port that is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const text = await complain(['demo@2', '--port', String(port)], env);
    expect(text.replace(String(port), 'PORT')).toContain('but the system refused (EADDRINUSE)');
    taken.close();
  });
});

describe('with an engine', () => {
  /** Python's GPU worker, as far as this command knows it: an HTTP server that says where it listens. */
  async function engineThat(
    answer: string,
  ): Promise<{ env: NodeJS.ProcessEnv; started: () => { args: string[]; env: NodeJS.ProcessEnv } }> {
    const file = join(temporaryFolder(), 'started.json');
    const python = fakePython(
      `fs.writeFileSync(${JSON.stringify(file)}, JSON.stringify({ args, env: process.env }));
      const server = require('node:http').createServer((request, response) => {
        let body = '';
        request.on('data', (text) => (body += text)).on('end', () => {
          const asked = JSON.parse(body);
          const isKnown = request.headers.authorization === 'Bearer ' + process.env.TEMPER_ENGINE_KEY;
          const [status, told] = isKnown ? (${answer})(asked) : [401, {}];
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(told));
        });
      });
      server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ msg: 'ready', port: server.address().port })));
      process.stdin.resume().on('end', () => process.exit(0));`,
    );
    const env = { ...python, TEMPER_SERVE_KEY: KEY };
    return { env, started: () => JSON.parse(readFileSync(file, 'utf8')) as ReturnType<() => never> };
  }

  async function answering(): Promise<string> {
    const { adapter } = (await readManifest(store, { run: 'demo', branch: 0, step: 2 }))!;
    return `(asked) => [200, { model: asked.model, adapter_sha256: '${adapter.sha256}', choices: [
      { index: 0, message: { role: 'assistant', content: JSON.stringify(asked) }, finish_reason: 'stop' },
    ] }]`;
  }

  test('it answers until Ctrl-C, and tells itself as JSON', async () => {
    writeFileSync(join(project, 'temporal.config.ts'), `export default { engine: { threads: 3, slots: 64 } };\n`);
    const { env, started } = await engineThat(await answering());
    const port = await freePort();
    const stop = new AbortController();
    const flags = '--device cpu --dtype bfloat16 --host localhost --allow-host gpu-1 --model-name gpt-5'.split(' ');
    const serving = runCli(project, ['serve', 'demo@2', '--port', String(port), ...flags, '--json'], {
      env: { ...env, OPENAI_API_KEY: "a provider's" },
      signal: stop.signal,
    });
    const client = new OpenAI({ baseURL: `http://localhost:${port}/v1`, apiKey: KEY, maxRetries: 0 });
    const asking = () =>
      client.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content: SAID }] });
    let answer: Awaited<ReturnType<typeof asking>> | null = null;
    await until('it answers', async () => (answer = await asking().catch(() => null)) !== null, 100_000, 50);
    expect(JSON.parse(answer!.choices[0]!.message.content!)).toMatchObject({
      model: 'demo@2',
      temperature: 1,
      max_tokens: 512,
    });
    stop.abort();
    const { exitCode, stdout, stderr } = await serving;
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toEqual({
      baseUrl: `http://localhost:${port}/v1`,
      model: 'demo@2',
      models: ['demo@2', 'demo', 'gpt-5'],
      adapterSha256: expect.any(String),
      keyVariable: 'TEMPER_SERVE_KEY',
    });
    await expect(asking()).rejects.toThrow('Connection error');
    const { args, env: given } = started();
    expect(settingsIn(args)).toMatchObject({
      engine: { threads: 3, device: 'cpu', dtype: 'bfloat16', slots: 64 },
      host: '127.0.0.1',
      port: 0,
      role: 'sample-any-base',
    });
    expect(given).toMatchObject({ TEMPER_ENGINE_KEY: expect.stringMatching(/^[\w-]{43}$/) });
    expect([given['TEMPER_SERVE_KEY'], given['OPENAI_API_KEY']]).toEqual([undefined, undefined]);
    const log = readFileSync(join(project, '.temper', 'logs', 'serve.jsonl'), 'utf8');
    // Without --record, nothing of a conversation is kept.
    const kept = readdirSync(project, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const holding = kept.filter(({ parentPath, name }) => readFileSync(join(parentPath, name)).includes(SAID));
    expect([holding, existsSync(join(project, '.temper', 'store', 'production'))]).toEqual([[], false]);
    for (const secret of [KEY, given['TEMPER_ENGINE_KEY']!]) {
      expect(args.join(' ')).not.toContain(secret);
      expect(log + stdout).not.toContain(secret);
    }
  });

  test('a checkpoint is served in the type of numbers that it was trained in', async () => {
    const { env, started } = await engineThat(
      "() => [404, { error: { type: 'BadConfig', message: 'the model mine must be registered; name it' } }]",
    );
    const { exitCode, stderr } = await runCli(project, ['serve', 'demo@2', '--port', '0'], { env });
    expect([exitCode, stderr]).toEqual([2, 'temper: the model mine must be registered; name it']);
    expect(settingsIn(started().args)).toMatchObject({
      role: 'sample',
      engine: { device: 'auto', dtype: 'float32' },
    });
  });

  test('a checkpoint of a run with --load-in-4bit is served in 4 bits, and so is another one on request', async () => {
    await makeRun(store, { run: 'packed', steps: 1, platform: { quantization: 'nf4', dtype: 'bfloat16' } });
    const unregistered = "() => [404, { error: { type: 'BadConfig', message: 'none' } }]";
    const settingsOf = async (...words: string[]) => {
      const { env, started } = await engineThat(unregistered);
      expect((await runCli(project, ['serve', ...words, '--port', '0'], { env })).exitCode).toBe(2);
      return settingsIn(started().args);
    };
    const [own, another] = [await settingsOf('packed@1'), await settingsOf('demo@2', '--load-in-4bit')];
    expect(own).toMatchObject({ role: 'sample', engine: { dtype: 'bfloat16', loadIn4bit: true } });
    expect(another).toMatchObject({ role: 'sample-any-base', engine: { dtype: 'float32', loadIn4bit: true } });
    // The configuration is that of new runs.
    writeFileSync(join(project, 'temporal.config.ts'), 'export default { engine: { loadIn4bit: true } };\n');
    expect((await settingsOf('demo@2')).engine.loadIn4bit).toBe(false);
    writeFileSync(join(project, 'temporal.config.ts'), "export default { engine: { kind: 'vllm' } };\n");
    expect(await complain(['packed@1', '--port', '0'], { TEMPER_SERVE_KEY: KEY })).toContain(
      'packed@1 must be served by the embedded engine, because vLLM cannot load its base model in 4 bits as Temper does, got vllm',
    );
  });

  test('an engine that ends is told, with where to look', async () => {
    const { env } = await engineThat('() => process.exit(70)');
    const { exitCode, stderr } = await runCli(project, ['serve', 'demo@2', '--port', '0'], { env });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^temper: the engine ended while it started \(exit code 70 .*\); see .temper\/logs\/serve.jsonl$/,
    );
    expect(existsSync(join(project, '.temper', 'logs', 'serve.jsonl'))).toBe(true);
  });
});
