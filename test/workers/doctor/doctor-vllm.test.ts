/** Lines of `temper doctor` about a vLLM server that somebody else runs. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { vllmServerState } from '../../../workers/doctor/doctor-vllm.ts';

const VERSION = { version: '0.32.0' };
const CARD = { id: 'Qwen/Qwen3-0.6B', parent: null, max_model_len: 4096, owned_by: 'vllm' };
const MODELS = { data: [CARD] };
const ADAPTER = { error: { message: 'lora_name is missing' } };

let server: Server;
let url = '';
/** Answers by path. */
type Answers = Readonly<Record<string, readonly [status: number, body: unknown]>>;
let answers: Answers = {};
let keys: (string | undefined)[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    keys.push(request.headers.authorization);
    const [status, body] = answers[request.url!] ?? [404, { detail: 'Not Found' }];
    response.writeHead(status, status === 307 ? { location: '/elsewhere' } : {}).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => void server.close());

/** The server as it should be, but for `changes`. */
function state(changes: Answers = {}, folder = tmpdir()): Promise<string> {
  const loading = [422, ADAPTER] as const;
  answers = { '/version': [200, VERSION], '/v1/models': [200, MODELS], '/v1/load_lora_adapter': loading, ...changes };
  keys = [];
  // The key is read like the doctor does: env[TEMPER_VLLM_KEY].
  return vllmServerState(url, folder, 'secret');
}

it('is asked with the key in TEMPER_VLLM_KEY, and told by model and context', async () => {
  expect(await state()).toBe(`vLLM 0.32.0 at ${url} serves Qwen/Qwen3-0.6B, 4096 tokens of context`);
  expect(new Set(keys)).toEqual(new Set(['Bearer secret']));
});

it.each([
  ['another key', { '/v1/models': [401, {}] }, 'refuses the key in TEMPER_VLLM_KEY (status 401)'],
  ['another server', { '/version': [404, {}] }, 'is no vLLM server'],
  ['SGLang', { '/v1/models': [200, { data: [{ ...CARD, owned_by: 'sglang' }] }] }, 'is no vLLM server'],
  ['no adapters', { '/v1/load_lora_adapter': [404, {}] }, 'start it with --enable-lora and VLLM_ALLOW_RUNTIME'],
  ['a redirect', { '/version': [307, {}] }, 'does not answer (unexpected redirect)'],
  ['an endless answer', { '/v1/models': [200, ' '.repeat(5e6)] }, 'an answer of more than 4194304 bytes'],
] as const)('%s is named with what to do', async (_, changes, told) => {
  await expect(state(changes)).rejects.toThrow(told);
});

it('a folder that this host does not have is named', async () => {
  await expect(state({}, '/nowhere')).rejects.toThrow('/nowhere must be a folder that this user can write to');
});
