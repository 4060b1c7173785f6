/** `temper ui` in a process of its own, as a user starts it, and a client of its API. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { badConfig } from '../../core/contract/failures.ts';

/** The package of `npm run build`, as users have it, or the sources, which bring their compiler. */
const PROGRAMS = {
  package: fileURLToPath(new URL('../../dist/cli/temper.js', import.meta.url)),
  sources: fileURLToPath(new URL('../../cli/temper.js', import.meta.url)),
} as const;

type ProgramName = keyof typeof PROGRAMS;

const KEY = 'bench-key-of-the-ui-0123456789abcdef';

export interface UiProcess {
  readonly url: string;
  readonly process: ChildProcess;
  /** Answer of a view. */
  ask(path: string): Promise<unknown>;
  /** Everything that a browser loads to show the list of runs, in bytes over the wire. */
  openFirstView(): Promise<number>;
  /** A client that reads what changes, until it is stopped. */
  follow(run: string): () => void;
  stop(): Promise<void>;
}

export function readProgram(name: string): ProgramName {
  if (name !== 'package' && name !== 'sources')
    throw badConfig(`--of must be package or sources, got ${name}; leave it out for the package`);
  if (existsSync(PROGRAMS[name])) return name;
  throw badConfig('--of package measures dist/, which is not there; run npm run build, or pass --of sources');
}

export interface UiPlace {
  readonly program: ProgramName;
  readonly store: string;
  readonly cache: string;
  readonly cwd: string;
}

export async function startUi({ program, store, cache, cwd }: UiPlace): Promise<UiProcess> {
  const env = { ...process.env, TEMPER_UI_KEY: KEY, TEMPER_CACHE: cache };
  const child = spawn(process.execPath, [PROGRAMS[program], 'ui', '--store', store, '--port', '0', '--json'], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await readUrl(child);
  const headers = { authorization: `Bearer ${KEY}` };
  const ask = async (path: string): Promise<unknown> => {
    const answer = await fetch(`${url}/api/${path}`, { headers });
    const body: unknown = await answer.json();
    if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${JSON.stringify(body)}`);
    return body;
  };
  return {
    url,
    process: child,
    ask,
    openFirstView: () => openFirstView(url, headers),
    follow: (run) => follow(`${url}/api/events`, headers, run, ask),
    stop: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** It prints one JSON object, over several lines, once it listens. */
async function readUrl({ stdout }: ChildProcess): Promise<string> {
  let printed = '';
  for await (const line of createInterface({ input: stdout! })) {
    printed += line;
    if (line === '}') return (JSON.parse(printed) as { url: string }).url;
  }
  throw new Error('temper ui ended before it listened');
}

type Headers = Readonly<Record<string, string>>;

/** Follows a one-time link as a browser does, and loads the page, its files, and the two answers that it asks for first. */
async function openFirstView(url: string, headers: Headers): Promise<number> {
  const made = await fetch(`${url}/api/links`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{}',
  });
  const link = ((await made.json()) as { url: string }).url;
  const opened = await fetch(link, { redirect: 'manual' });
  const cookie = (opened.headers.get('set-cookie') ?? '').split(';')[0]!;
  const page = new URL(opened.headers.get('location') ?? '/', link).href;
  const load = async (path: string): Promise<number> => {
    const answer = await fetch(new URL(path, page), { headers: { cookie } });
    if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}`);
    const body = await answer.arrayBuffer();
    return Number(answer.headers.get('content-length') ?? body.byteLength);
  };
  const sizes = [await load(page), ...(await Promise.all(['page.js', 'page.css', 'api/info', 'api/runs'].map(load)))];
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Reads events, and for each step of the run what its page shows, as the pages do. */
function follow(url: string, headers: Headers, run: string, ask: UiProcess['ask']): () => void {
  const over = new AbortController();
  const read = async (): Promise<void> => {
    const { body } = await fetch(url, { headers, signal: over.signal });
    let step = 0;
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      if (!chunk.includes('"kind":"run"')) continue;
      const curve = (await ask(`runs/${run}/curve?after=${step}`)) as { steps: { step: number }[] };
      step = curve.steps.at(-1)?.step ?? step;
      await ask(`runs/${run}`);
    }
  };
  read().catch((error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  return () => over.abort();
}
