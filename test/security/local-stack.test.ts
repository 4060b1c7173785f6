/** One running local stack, and those who must not read, start or change anything in it. */
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectClient, type TemporalClient } from '../../workers/connection/connection.ts';
import type { LocalStack } from '../../workers/local-stack/client.ts';
import { childPid, openStack, stackFile, WITH_SERVER } from '../workers/local-stack/stack-harness.ts';
import { addOtherUser, ask, findChromium, listeningAt, type Address, type OtherUser } from './attackers.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const PROVIDER_KEY = 'sk-key-of-a-provider';
const OWN_WORKFLOW = 'run/secret';
const START = '/api/v1/namespaces/default/workflows/from-a-page';
const WORKFLOWS = '/api/v1/namespaces/default/workflows';
const START_BODY = JSON.stringify({ workflowType: { name: 'trainRun' }, taskQueue: { name: 'temper' } });

// Each of these characters means something in a URI.
const project = join(temporaryFolder(), 'tried #1? 50%');
let other: OtherUser | string;
let stack: LocalStack;
let server: TemporalClient;
let ui: Address & { readonly key: string };

beforeAll(async () => {
  other = addOtherUser();
  mkdirSync(project);
  for (const folder of [dirname(project), project]) chmodSync(folder, 0o755);
  process.env['OPENAI_API_KEY'] = PROVIDER_KEY;
  ({ stack } = await openStack(project, { commands: WITH_SERVER }));
  const url = new URL(stack.uiUrl ?? '');
  ui = { host: url.hostname, port: Number(url.port), key: url.searchParams.get('key') ?? '' };
  server = await connectClient(
    { address: stack.temporalAddress, namespace: stack.namespace },
    { ...process.env, http_proxy: 'http://127.0.0.1:9' },
  );
  await server.client.workflow.start('nobodyPlaysThis', { taskQueue: 'nobody', workflowId: OWN_WORKFLOW });
});

afterAll(async () => {
  delete process.env['OPENAI_API_KEY'];
  await server?.close();
  await stack?.close();
  if (typeof other !== 'string') other.remove();
});

async function workflows(): Promise<string[]> {
  const { executions } = await server.connection.workflowService.listWorkflowExecutions({ namespace: stack.namespace });
  return (executions ?? []).map(({ execution }) => execution?.workflowId ?? '');
}

/** The server's count may come a moment later than the request. */
async function nothingWasStarted(): Promise<void> {
  expect((await workflows()).filter((id) => id !== OWN_WORKFLOW)).toEqual([]);
}

const uiHost = () => `${ui.host}:${ui.port}`;
const cookie = () => ({ cookie: `temper_ui_${ui.port}=${ui.key}` });

describe("Temporal's UI", () => {
  it('opens with the key that is printed, and then without', async () => {
    const opened = await fetch(stack.uiUrl ?? '', { redirect: 'manual' });
    expect(opened.status).toBe(303);
    expect(opened.headers.get('location')).toBe('/');
    const set = opened.headers.get('set-cookie') ?? '';
    expect(set).toMatch(/; HttpOnly; SameSite=Lax/);
    const page = await fetch(`http://${uiHost()}/`, { headers: { cookie: set.split(';')[0] ?? '' } });
    expect([page.status, page.headers.get('x-frame-options')]).toEqual([200, 'SAMEORIGIN']);
    expect(await page.text()).toContain('sveltekit');
  });

  it.each([
    ['no key', 401, () => ({ host: uiHost() })],
    ['a wrong key', 401, () => ({ host: uiHost(), cookie: `temper_ui_${ui.port}=${'x'.repeat(43)}` })],
    ['a name that leads here', 403, () => ({ ...cookie(), host: `evil.test:${ui.port}` })],
    ['a name that begins as the right one', 403, () => ({ ...cookie(), host: `${ui.host}.evil.test:${ui.port}` })],
    ['another port', 403, () => ({ ...cookie(), host: ui.host })],
  ])('refuses a request with %s', async (_, status, headers) => {
    expect(await ask(ui, WORKFLOWS, headers())).toMatchObject({ status });
  });

  it.each([
    ['a page of another site', 'http://evil.test'],
    ['another port of this machine', 'http://127.0.0.1:9'],
    ['an opaque origin', 'null'],
    ['no origin', null],
  ])('lets %s change nothing, even where the browser sends the key', async (_, origin) => {
    const headers = { ...cookie(), host: uiHost(), 'content-type': 'text/plain', ...(origin ? { origin } : {}) };
    expect(await ask(ui, START, headers, 'POST', START_BODY)).toMatchObject({ status: 403 });
    await nothingWasStarted();
  });

  it('never leads to another host', async () => {
    const { status, body } = await ask(ui, `//evil.test/?key=${ui.key}`, { host: uiHost() });
    expect([status, body]).toEqual([303, '']);
    const response = await fetch(`http://${uiHost()}//evil.test/x?key=${ui.key}`, { redirect: 'manual' });
    expect(response.headers.get('location')).toBe('/evil.test/x');
  });
});

describe.skipIf(process.platform !== 'linux')('whatever Temporal listens on', () => {
  it('answers no HTTP request of a page', async () => {
    const addresses = listeningAt(childPid(project, 'temporal-server'));
    expect(addresses.length).toBeGreaterThan(3);
    const reachable = addresses.filter(({ host }) => host === '127.0.0.1');
    // The UI's own server stands where no page can find it.
    expect(addresses.length - reachable.length).toBe(1);
    for (const address of reachable) {
      for (const host of [`127.0.0.1:${address.port}`, 'localhost', 'evil.test', 'temper.invalid', 'no host', '*']) {
        const { status, body } = await ask(address, WORKFLOWS, { host });
        expect([null, 400, 403, 404], `${address.port} for ${host}: ${status} ${body}`).toContain(status);
        expect(body).not.toContain(OWN_WORKFLOW);
        const started = await ask(address, START, { host, 'content-type': 'text/plain' }, 'POST', START_BODY);
        expect([null, 400, 403, 404, 405]).toContain(started.status);
      }
    }
    await nothingWasStarted();
  });
});

describe('the processes of a stack', () => {
  it.skipIf(process.platform !== 'linux')('get no keys of hosted models, but for those that play agents', () => {
    const environment = (name: string) => readFileSync(`/proc/${childPid(project, name)}/environ`, 'utf8');
    expect(environment('temporal-server')).not.toContain(PROVIDER_KEY);
    expect(environment('gpu-worker')).not.toContain(PROVIDER_KEY);
    expect(environment('gpu-worker')).toContain('TEMPER_ENGINE_KEY=');
    expect(environment('worker')).toContain(PROVIDER_KEY);
  });

  it('write where the project is, whatever its path holds', () => {
    expect(readdirSync(dirname(project))).toEqual(['tried #1? 50%']);
    expect(existsSync(join(project, '.temper', 'temporal.db'))).toBe(true);
    expect(statSync(join(project, '.temper')).mode & 0o777).toBe(0o700);
  });
});

describe('another user of the machine', () => {
  it('reads nothing of the project, opens no socket and no page', (context) => {
    if (typeof other === 'string') {
      context.skip(other);
      return;
    }
    const script = `
      import { readdirSync } from 'node:fs';
      import { connect } from 'node:net';
      const [folder, socket, ui] = process.argv.slice(1);
      const read = () => { try { return readdirSync(folder); } catch (error) { return error.code; } };
      const open = () => new Promise((resolve) =>
        connect(socket).once('connect', () => resolve('open')).once('error', ({ code }) => resolve(code)));
      const page = await fetch(ui + '${WORKFLOWS}');
      console.log(JSON.stringify([read(), await open(), page.status, await page.text()]));
      process.exit();`;
    const state = join(project, '.temper');
    const [files, socket, status, body] = other.run(script, state, stackFile(project).socket, `http://${uiHost()}`);
    expect([files, socket, status]).toEqual(['EACCES', 'EACCES', 401]);
    expect(body).not.toContain(OWN_WORKFLOW);
  });
});

describe('a page in a browser', () => {
  it('reads nothing, starts nothing and shows nothing of the stack', { timeout: 90_000 }, async (context) => {
    const executablePath = findChromium();
    if (executablePath === null) {
      context.skip('no Chromium on this machine (TEMPER_CHROMIUM names one)');
      return;
    }
    const page = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>evil</p>'));
    const port = await listen(page);
    const args = ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP evil.test 127.0.0.1'];
    const browser = await chromium.launch({ executablePath, args });
    try {
      const tab = await browser.newPage();
      // The person uses the UI in the same browser.
      await tab.goto(stack.uiUrl ?? '');
      await tab.getByText(OWN_WORKFLOW).waitFor({ timeout: 30_000 });
      expect(tab.url()).not.toContain(ui.key);

      await tab.goto(`http://evil.test:${port}/`);
      const ports = process.platform === 'linux' ? listeningAt(childPid(project, 'temporal-server')) : [];
      const targets = [ui, ...ports].filter(({ host }) => host === '127.0.0.1').map((address) => address.port);
      const read = await tab.evaluate(tryEverything, { targets, start: START, body: START_BODY, list: WORKFLOWS });
      expect(read).toEqual([]);
      const frame = tab.frames().find((candidate) => candidate.url().includes(String(ui.port)));
      expect((await frame?.content()) ?? '').not.toContain(OWN_WORKFLOW);

      // A name that led to the page's server before, and now leads here.
      const rebound = await tab.goto(`http://evil.test:${ui.port}${WORKFLOWS}`);
      expect(rebound?.status()).toBe(403);
      await nothingWasStarted();
    } finally {
      await browser.close();
      page.close();
    }
  });
});

function listen(page: Server): Promise<number> {
  return new Promise((resolve) => {
    page.listen(0, '127.0.0.1', () => resolve((page.address() as AddressInfo).port));
  });
}

/** Runs in the page. Returns what it could read. */
async function tryEverything({
  targets,
  start,
  body,
  list,
}: Record<'start' | 'body' | 'list', string> & { targets: number[] }) {
  const read: string[] = [];
  for (const port of targets) {
    const origin = `http://127.0.0.1:${port}`;
    for (const mode of ['no-cors', 'cors'] as const) {
      const signal = AbortSignal.timeout(3000);
      const shared = { mode, credentials: 'include', signal } as const;
      await fetch(origin + start, { ...shared, method: 'POST', body }).catch(() => null);
      const text = await fetch(origin + list, shared).then(
        (answer) => answer.text(),
        () => '',
      );
      if (text !== '') read.push(`${port}: ${text.slice(0, 200)}`);
    }
  }
  return read;
}
