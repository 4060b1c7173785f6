import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createChat } from '../../../cli/ui/chat/chat.ts';
import { Engines } from '../../../cli/ui/chat/engines.ts';
import { ENGINE_KEY_VARIABLE } from '../../../core/contract/wire-constants.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { stateKey } from '../../../store/layout.ts';
import type { Store } from '../../../store/store.ts';
import type { ChatEvent, ChatRequest } from '../../../views/api/requests.ts';
import { fixtureState, temporaryProject } from '../fixture-store.ts';
import { makeRun } from '../../store/records/made-run.ts';
import { chunk, startStreamingServer, words, type Answer } from './streaming-server.ts';

const KEY = 'key-of-this-test';
let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
});

const QUESTION = [{ role: 'user', content: 'Why?' }] as const;

function open(env: NodeJS.ProcessEnv = {}) {
  const engines = new Engines({ project, env, store, storeUri: null });
  onTestFinished(() => engines.close());
  return createChat({ env, store }, engines);
}

async function ask(request: Partial<ChatRequest>, env: NodeJS.ProcessEnv = {}, signal = new AbortController().signal) {
  const events: ChatEvent[] = [];
  for await (const event of open(env).answer({ model: 'openai/gpt-5', messages: QUESTION, ...request }, signal))
    events.push(event);
  return events;
}

async function hosted(answer: Answer) {
  const server = await startStreamingServer(answer);
  return { server, env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: KEY } };
}

/** The project's engine is this server. */
async function engine(answer: Answer) {
  await makeRun(store, { steps: 2 });
  const server = await startStreamingServer(answer);
  await writeFile(join(project, 'temporal.config.ts'), `export default { engine: { url: '${server.url}' } };`);
  vi.stubEnv(ENGINE_KEY_VARIABLE, KEY);
  onTestFinished(() => void vi.unstubAllEnvs());
  return server;
}

test('an answer comes as it is written, with its end and its tokens', async () => {
  const { server, env } = await hosted(words('Be', 'cause ', '<script>', '💡'));
  expect(await ask({ temperature: 0.2, maxTokens: 50 }, env)).toEqual([
    { kind: 'text', text: 'Be' },
    { kind: 'text', text: 'cause ' },
    { kind: 'text', text: '<script>' },
    { kind: 'text', text: '💡' },
    { kind: 'end', finishReason: 'stop', tokens: 4 },
  ]);
  const [{ headers, body }] = server.asked as [(typeof server.asked)[0]];
  expect(headers.authorization).toBe(`Bearer ${KEY}`);
  expect(body).toEqual({
    model: 'gpt-5',
    messages: QUESTION,
    temperature: 0.2,
    max_completion_tokens: 50,
    stream: true,
  });
});

test('a refusal, a failure in the middle and nonsense are errors of the chat', async () => {
  const refusing = await hosted((response) => response.writeHead(401).end('{"error":{"message":"wrong key"}}'));
  expect(await ask({}, refusing.env)).toEqual([{ kind: 'error', text: 'openai/gpt-5 refused with 401: wrong key' }]);
  const failing = await hosted((response) => {
    response.write(chunk({ choices: [{ delta: { content: 'Be' } }] }));
    response.end(chunk({ error: { message: 'out of memory' } }));
  });
  expect(await ask({}, failing.env)).toEqual([
    { kind: 'text', text: 'Be' },
    { kind: 'error', text: 'openai/gpt-5 gave up: out of memory' },
  ]);
  const babbling = await hosted((response) => response.end('data: {"choices\n\n'));
  expect(await ask({}, babbling.env)).toMatchObject([{ kind: 'error', text: expect.stringContaining('no JSON') }]);
  const redirecting = await hosted((response) => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end());
  expect(await ask({}, redirecting.env)).toMatchObject([{ kind: 'error' }]);
});

test.each([
  [{ temperature: 3 }, 'temperature of a chat must be from 0 to 2, got 3'],
  [{ maxTokens: 0 }, 'maxTokens of a chat must be a whole number from 1 to 32768, got 0'],
  [{ messages: [] }, 'messages of a chat must be a list of 1 to 1000 messages, got 0'],
  [{ model: 'no such' }, 'the model must be a checkpoint such as demo@12'],
  [{ model: 'http://127.0.0.1:1/v1#m' }, 'the model must be a checkpoint such as demo@12'],
  [{ model: 'demo@7' }, 'no run demo in the store'],
  [{ model: 'openai/gpt-5' }, 'openai/gpt-5 needs a key in OPENAI_API_KEY'],
])('a chat that cannot be answered says why: %j', async (request, says) => {
  expect(await ask(request)).toMatchObject([{ kind: 'error', text: expect.stringContaining(says) }]);
});

test('a stopped chat says nothing more, and its server is left', async () => {
  const { server, env } = await hosted((response) => {
    response.write(chunk({ choices: [{ delta: { content: 'Be' } }] }));
  });
  const stopping = new AbortController();
  const chat = open(env).answer({ model: 'openai/gpt-5', messages: QUESTION }, stopping.signal);
  const events: ChatEvent[] = [];
  for await (const event of chat) {
    events.push(event);
    stopping.abort();
  }
  expect(events).toEqual([{ kind: 'text', text: 'Be' }]);
  await vi.waitFor(() => expect(server.left).toBe(1));
});

test("a checkpoint is asked as an evaluation of its run would ask it, once the project's engine has loaded it", async () => {
  const server = await engine((response, asked, number) => {
    if (number === 1) response.writeHead(503).end('{"error":{"message":"loading demo@2"}}');
    else words('7')(response, asked, number);
  });
  expect(await ask({ model: 'demo@2' })).toEqual([
    { kind: 'waiting', text: "asking the engine of this project's local stack" },
    { kind: 'waiting', text: 'waiting for demo@2: loading demo@2' },
    { kind: 'text', text: '7' },
    { kind: 'end', finishReason: 'stop', tokens: 1 },
  ]);
  const { rollout } = (await import('../../../core/rules/run-defaults.ts')).defaultRunConfig({
    run: 'demo',
    agent: 'toy',
    baseModel: 'pocket',
  });
  expect(server.asked[1]!.body).toEqual({
    model: 'demo@2',
    messages: QUESTION,
    temperature: rollout.temperature,
    max_tokens: rollout.maxTokens,
    stream: true,
    stream_options: { include_usage: true },
  });
  await ask({ model: 'base:demo', temperature: 0, maxTokens: 3 });
  expect(server.asked[2]!.body).toMatchObject({ model: 'pocket', temperature: 0, max_tokens: 3 });
});

test('a chat says which run shares its engine', async () => {
  await engine(words('7'));
  await store.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 2), state: 'running', agent: 'toy' }));
  expect((await ask({ model: 'demo@1' }))[0]).toEqual({
    kind: 'waiting',
    text: "asking the engine of this project's local stack: run demo uses it, too, and may be slowed down by this chat",
  });
});

test.each([
  ['one line', 'data: '],
  ['many lines', chunk({ padding: 'x'.repeat(2 ** 16) })],
])(
  'an answer without end is given up: %s',
  async (_, line) => {
    const { server, env } = await hosted((response) => {
      const part = line.repeat(2 ** 20 / line.length);
      const pour = (): void => {
        while (!response.destroyed && response.write(part));
      };
      response.on('drain', pour);
      pour();
    });
    const text = 'an answer may have 256 MiB, and a line of it 4 MiB, it has more; lower the token limit';
    expect(await ask({}, env)).toEqual([{ kind: 'error', text }]);
    await vi.waitFor(() => expect(server.left).toBe(1), 60_000);
  },
  300_000,
);
