/** `temper ui` in this process, with the requests of its clients. */
import { onTestFinished } from 'vitest';
import { main } from '../../../cli/main.ts';
import type { Output } from '../../../cli/terminal/output.ts';
import { freePort } from '../../free-port.ts';
import { askAt, type Answer } from '../ask-at.ts';

export const KEY = 'a key of temper ui in these tests';
export const WITH_KEY = { authorization: `Bearer ${KEY}` };
const JSON_TYPE = { 'content-type': 'application/json' };

export interface ServedUi {
  readonly port: number;
  readonly origin: string;
  /** Lines that the terminal shows, so far. */
  readonly lines: string[];
  /** With the key, unless `headers` has something else. */
  ask(method: string, path: string, more?: { body?: string; headers?: Record<string, string> }): Promise<Answer>;
  /** A view's answer. */
  view<T>(path: string): Promise<T>;
  post(path: string, body: object, headers?: Record<string, string>): Promise<Answer>;
  /** Path of a link that works once. */
  makeLink(): Promise<string>;
  /** Uses a link as a browser does: the path that its pages are below, and its cookie. */
  enter(): Promise<{ readonly base: string; readonly cookie: string }>;
  stop(): Promise<number>;
}

interface ServeOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly isTerminal?: boolean;
}

export async function serveUi(cwd: string, options: ServeOptions = {}): Promise<ServedUi> {
  const { args = [], env = { TEMPER_UI_KEY: KEY }, isTerminal = false } = options;
  const port = await freePort();
  const lines: string[] = [];
  const stopping = new AbortController();
  const output: Output = {
    isTerminal,
    columns: 100,
    rows: 30,
    stream: process.stdout,
    line: (text = '') => void lines.push(text),
    errorLine: (text) => void lines.push(text),
  };
  const words = ['ui', '--port', String(port), ...args];
  const place = { output, cwd, env: { TEMPER_CACHE: `${cwd}/cache`, ...env }, signal: stopping.signal };
  const running = main(words, place);
  const stop = (): Promise<number> => {
    stopping.abort();
    return running;
  };
  onTestFinished(async () => void (await stop()));
  const ask: ServedUi['ask'] = (method, path, { body, headers = WITH_KEY } = {}) =>
    askAt(port, { method, path, headers, body: body ?? null });
  const post: ServedUi['post'] = (path, body, headers = WITH_KEY) =>
    ask('POST', path, { body: JSON.stringify(body), headers: { ...JSON_TYPE, ...headers } });
  await Promise.race([untilAnswered(port), running.then((code) => failStart(code, lines))]);
  const makeLink = async (): Promise<string> =>
    new URL((JSON.parse((await post('/api/links', {})).text) as { url: string }).url).pathname;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    lines,
    ask,
    post,
    view: async (path) => JSON.parse((await ask('GET', `/api/${path}`)).text),
    makeLink,
    enter: async () => {
      const { headers } = await ask('GET', await makeLink(), { headers: {} });
      return { base: headers.location ?? '', cookie: (headers['set-cookie']?.[0] ?? '').split(';')[0]! };
    },
    stop,
  };
}

function failStart(code: number, lines: readonly string[]): never {
  throw new Error(`temper ui ended with ${code}: ${lines.join(' ')}`);
}

async function untilAnswered(port: number): Promise<void> {
  for (;;) {
    const answer = await askAt(port, { method: 'GET', path: '/health', headers: {}, body: null }).catch(() => null);
    if (answer?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
