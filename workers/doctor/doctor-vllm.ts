/** Checks an external vLLM server for all that the GPU worker needs, except its proof. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { VLLM_KEY_VARIABLE } from '../../core/contract/wire-constants.ts';

const WITHIN_MS = 5000;
const MAX_BYTES = 4 * 1024 ** 2;
const LOADING = 'start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment';

interface Answered {
  readonly status: number;
  readonly body: unknown;
}

interface ModelCard {
  readonly id?: unknown;
  readonly parent?: unknown;
  readonly max_model_len?: unknown;
  readonly owned_by?: unknown;
}

/** Describes the server; throws for an obstacle. `folder` is that of `engine.vllm.adapters`, on this host. */
export async function vllmServerState(url: string, folder: string | null, key: string | undefined): Promise<string> {
  const ask = (path: string, init: RequestInit = {}) => answerOf(url, path, { ...init, headers: headersOf(key) });
  const version = await ask('/version');
  const models = await ask('/v1/models');
  if (models.status === 401 || models.status === 403)
    throw new Error(
      `${url} refuses the key in ${VLLM_KEY_VARIABLE} (status ${models.status}); set it to the key that the server was started with`,
    );
  const cards = cardsOf(models.body);
  const base = cards.find(({ parent }) => parent === null || parent === undefined);
  const found = (version.body as { version?: unknown } | null)?.version;
  if (typeof found !== 'string' || base === undefined || cards.some((card) => card.owned_by === 'sglang'))
    throw new Error(`${url} is no vLLM server that serves a model; correct engine.vllm.url in temporal.config.ts`);
  // Without a name and a path nothing is loaded: only the status tells something.
  const loading = await ask('/v1/load_lora_adapter', { method: 'POST', body: '{}' });
  if (loading.status === 404) throw new Error(`${url} loads no adapters at run time; ${LOADING}`);
  await checkFolder(folder);
  return `vLLM ${found} at ${url} serves ${String(base.id)}, ${String(base.max_model_len)} tokens of context`;
}

async function answerOf(url: string, path: string, init: RequestInit): Promise<Answered> {
  try {
    const address = `${url.replace(/\/$/, '')}${path}`;
    const response = await fetch(address, { ...init, redirect: 'error', signal: AbortSignal.timeout(WITHIN_MS) });
    return { status: response.status, body: parseJson(await readText(response)) };
  } catch (cause) {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    const reason = error.cause instanceof Error ? error.cause.message : error.message;
    throw new Error(`${url} does not answer (${reason}); start the server, or correct engine.vllm.url`, { cause });
  }
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new Error(`an answer of more than ${MAX_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function headersOf(key: string | undefined): Record<string, string> {
  return { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

function cardsOf(body: unknown): ModelCard[] {
  const data = (body as { data?: unknown } | null)?.data;
  return Array.isArray(data) ? data.filter((card): card is ModelCard => typeof card === 'object' && card !== null) : [];
}

async function checkFolder(folder: string | null): Promise<void> {
  try {
    await access(folder ?? '', constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new Error(`${folder} must be a folder that this user can write to; correct engine.vllm.adapters.folder`, {
      cause,
    });
  }
}
