/** Admission to `temper ui`: who gets in, and who does not. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { jsonBody } from '../../../cli/ui/server/server.ts';
import { complaintIn } from '../run-cli.ts';
import { temporaryProject, writeFixtureRun } from '../fixture-store.ts';
import { KEY, serveUi, type ServedUi } from './served-ui.ts';

async function served(options?: Parameters<typeof serveUi>[1]): Promise<ServedUi> {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 2 });
  return serveUi(project, options);
}

describe('the link', () => {
  test('opens the pages once, with a cookie that no script and no other path gets', async () => {
    const ui = await served();
    const link = await ui.makeLink();
    const opened = await ui.ask('GET', link, { headers: {} });
    expect(opened.status).toBe(303);
    const base = opened.headers.location ?? '';
    expect(base).toMatch(/^\/w\/[\w-]{22}\/$/);
    const [set = ''] = opened.headers['set-cookie'] ?? [];
    expect(set).toMatch(/^temper-ui-\d+=[\w-]{43}; Path=\/w\/[\w-]{22}\/; HttpOnly; SameSite=Strict$/);
    expect(set).toContain(`temper-ui-${ui.port}=`);
    const cookie = { cookie: set.split(';')[0]! };
    expect((await ui.ask('GET', base, { headers: cookie })).text).toContain('<script src="page.js">');
    expect((await ui.ask('GET', `${base}api/runs`, { headers: cookie })).status).toBe(200);
    const again = await ui.ask('GET', link, { headers: { accept: 'text/html' } });
    expect([again.status, again.headers['set-cookie'], again.text.includes('was used already')]).toEqual([
      410,
      undefined,
      true,
    ]);
  });

  test('is not used up by what only looks at it', async () => {
    const ui = await served();
    const link = await ui.makeLink();
    expect((await ui.ask('HEAD', link, { headers: {} })).status).toBe(410);
    expect((await ui.ask('GET', link, { headers: { 'sec-purpose': 'prefetch;prerender' } })).status).toBe(410);
    expect((await ui.ask('GET', link, { headers: {} })).status).toBe(303);
  });

  test('from a page of another site also sets the cookie that the page then has', async () => {
    const ui = await served();
    const opened = await ui.ask('GET', await ui.makeLink(), { headers: { 'sec-fetch-site': 'cross-site' } });
    expect([opened.status, opened.headers['refresh']]).toEqual([200, expect.stringMatching(/^0; url=\/w\//)]);
    expect(opened.headers['set-cookie']).toHaveLength(1);
  });

  test('is shown on a terminal, and the next one after it was used', async () => {
    const ui = await served({ isTerminal: true });
    const [link] = /\/open\/[\w-]+/.exec(ui.lines.join('\n')) ?? [];
    expect((await ui.ask('GET', link!, { headers: {} })).status).toBe(303);
    const [, next] = /for another browser: http:\/\/127\.0\.0\.1:\d+(\/open\/[\w-]+)$/.exec(ui.lines.at(-1)!) ?? [];
    expect(next).not.toBe(link);
    expect((await ui.ask('GET', next!, { headers: {} })).status).toBe(303);
  });

  test('is asked for with the key where no terminal shows it', async () => {
    const ui = await served();
    expect(ui.lines.join('\n')).not.toContain('/open/');
    expect(ui.lines.at(-1)).toBe(
      `curl http://127.0.0.1:${ui.port}/api/links -H "Authorization: Bearer $TEMPER_UI_KEY" --json '{}'`,
    );
    const { headers, text } = await ui.ask('GET', '/', { headers: { accept: 'text/html' } });
    expect([headers['content-type'], text.includes('POST /api/links')]).toEqual(['text/html; charset=utf-8', true]);
  });

  test('of another start opens nothing', async () => {
    const [first, second] = [await served(), await served()];
    expect((await second.ask('GET', await first.makeLink(), { headers: {} })).status).toBe(410);
  });
});

describe('nothing is told to', () => {
  test('whoever has neither cookie nor key', async () => {
    const ui = await served();
    const { base, cookie } = await ui.enter();
    const paths = [
      '/',
      '/api/runs',
      '/api/info',
      '/page.js',
      base,
      `${base}api/runs`,
      `${base}page.js`,
      '/w/x/',
      '/nope',
    ];
    for (const path of paths) {
      const { status, text } = await ui.ask('GET', path, { headers: {} });
      expect([path, status]).toEqual([path, 401]);
      expect(text).not.toMatch(/demo|pocket|tic-tac-toe|store/);
    }
    const wrong = [
      { authorization: 'Bearer wrong' },
      { cookie: `${cookie}x` },
      // The cookie is worth nothing outside of its path.
      { cookie },
    ];
    for (const headers of wrong) expect((await ui.ask('GET', '/api/runs', { headers })).status).toBe(401);
  });

  test('a browser with the cookie of another server', async () => {
    const [first, second] = [await served(), await served()];
    const [other, own] = [await first.enter(), await second.enter()];
    const value = other.cookie.split('=')[1]!;
    for (const cookie of [other.cookie, `temper-ui-${second.port}=${value}`])
      expect((await second.ask('GET', `${own.base}api/runs`, { headers: { cookie } })).status).toBe(401);
    expect((await second.ask('GET', `${other.base}api/runs`, { headers: { cookie: own.cookie } })).status).toBe(401);
  });

  test('a name that somebody pointed at this machine', async () => {
    const ui = await served();
    const { base, cookie } = await ui.enter();
    for (const host of ['evil.example', `evil.example:${ui.port}`, '127.0.0.1.evil.example'])
      expect([host, (await ui.ask('GET', `${base}api/runs`, { headers: { host, cookie } })).status]).toEqual([
        host,
        403,
      ]);
    for (const host of ['localhost', `LOCALHOST:${ui.port}`, `[::1]:${ui.port}`])
      expect((await ui.ask('GET', `${base}api/runs`, { headers: { host, cookie } })).status).toBe(200);
  });

  test('a page of another origin', async () => {
    const ui = await served();
    const { base, cookie } = await ui.enter();
    const evil = ['http://evil.example', 'null', `http://127.0.0.1:${ui.port + 1}`, `http://localhost:${ui.port}`];
    for (const origin of evil)
      for (const path of [`${base}api/runs`, await ui.makeLink()]) {
        const { status } = await ui.ask('GET', path, { headers: { cookie, origin } });
        expect([origin, status]).toEqual([origin, 403]);
      }
    for (const site of ['cross-site', 'same-site']) {
      const headers = { cookie, 'sec-fetch-site': site };
      expect((await ui.ask('GET', `${base}api/runs`, { headers })).status).toBe(403);
    }
    const own = { cookie, origin: ui.origin, 'sec-fetch-site': 'same-origin' };
    expect((await ui.ask('GET', `${base}api/runs`, { headers: own })).status).toBe(200);
  });
});

describe('an action', () => {
  const ACTION = { action: 'rollback', input: { run: 'demo', step: 1 }, isConfirmed: false };

  test('must be JSON of a page of this server', async () => {
    const ui = await served();
    const { base, cookie } = await ui.enter();
    const path = `${base}api/actions`;
    const body = JSON.stringify(ACTION);
    const types = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'text/plain; application/json',
    ];
    for (const type of types) {
      const { status } = await ui.ask('POST', path, { body, headers: { cookie, 'content-type': type } });
      expect([type, status]).toEqual([type, 415]);
    }
    expect((await ui.post(path, ACTION, { cookie, origin: 'http://evil.example' })).status).toBe(403);
    expect((await ui.post(path, ACTION, { cookie, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await ui.post(path, ACTION, {})).status).toBe(401);
    expect((await ui.post(path, ACTION, { cookie, origin: ui.origin })).status).toBe(200);
  });

  test('is refused by --read-only, and so are chats', async () => {
    const ui = await served({ args: ['--read-only'] });
    const refused = await ui.post('/api/actions', ACTION);
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([403, { error: { code: 'read_only' } }]);
    expect((await ui.post('/api/chat', { model: 'demo@1', messages: [] })).status).toBe(403);
    expect(await ui.view('info')).toMatchObject({ isReadOnly: true });
  });
});

test('the server listens at the port that it is told', async () => {
  const { port, lines } = await served();
  expect(lines.join('\n')).toContain(`http://127.0.0.1:${port}`);
});

test('every answer forbids foreign scripts, frames, guesses and caches', async () => {
  const ui = await served();
  const { base, cookie } = await ui.enter();
  const paths = [base, `${base}page.js`, `${base}api/runs`, `${base}api/nothing`, '/', '/health', '/open/x'];
  for (const path of paths) {
    const { headers } = await ui.ask('GET', path, { headers: { cookie } });
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    expect(headers['cache-control']).toMatch(/no-store|private, no-cache/);
  }
});

test('an answer that several clients wait for is compressed once for each encoding', async () => {
  const answer = { text: 'a'.repeat(5000) };
  const [first, second, plain] = await Promise.all([
    jsonBody(answer, 'gzip'),
    jsonBody(answer, 'gzip'),
    jsonBody(answer, null),
  ]);
  expect(second).toBe(first);
  expect(plain.bytes.toString()).toBe(JSON.stringify(answer));
  expect(gunzipSync(first.bytes)).toEqual(plain.bytes);
});

test('page files are compressed once, and kept by a browser until they change', async () => {
  const ui = await served();
  const { base, cookie } = await ui.enter();
  const ask = (headers: Record<string, string>) => ui.ask('GET', `${base}page.js`, { headers: { cookie, ...headers } });
  const [plain, refused, gzip] = [
    await ask({}),
    await ask({ 'accept-encoding': 'br, gzip;q=0' }),
    await ask({ 'accept-encoding': 'gzip, deflate, br, zstd' }),
  ];
  const encodings = [plain, refused, gzip].map(({ headers }) => headers['content-encoding']);
  expect(encodings).toEqual([undefined, undefined, 'gzip']);
  expect(gunzipSync(gzip.bytes)).toEqual(plain.bytes);
  const again = await ask({ 'if-none-match': gzip.headers.etag ?? '' });
  expect([again.status, again.bytes.length]).toEqual([304, 0]);
});

test('the first view needs at most 400 kB over the wire', async () => {
  const ui = await served();
  const { base, cookie } = await ui.enter();
  const headers = { cookie, 'accept-encoding': 'gzip' };
  const paths = [base, `${base}page.js`, `${base}page.css`, `${base}api/info`, `${base}api/runs`];
  const answers = await Promise.all(paths.map((path) => ui.ask('GET', path, { headers })));
  const sum = answers.reduce((bytes, answer) => bytes + answer.bytes.length, 0);
  expect(sum).toBeLessThan(400_000);
  expect(sum).toBeGreaterThan(10_000);
});

test('neither the key nor a link is written anywhere', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 2 });
  const ui = await serveUi(project);
  const link = await ui.makeLink();
  const { cookie } = await ui.enter();
  await ui.view('runs');
  await ui.stop();
  const secrets = [KEY, link.split('/').at(-1)!, cookie.split('=')[1]!];
  const texts = [...ui.lines, process.argv.join(' ')];
  for (const name of await readdir(project, { recursive: true, withFileTypes: true }))
    if (name.isFile()) texts.push(await readFile(join(name.parentPath, name.name), 'latin1'));
  for (const secret of secrets) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
});

test('what is wrong is told in one line', async () => {
  const project = temporaryProject();
  const complain = (words: string[], env: NodeJS.ProcessEnv = {}) => complaintIn(project, ['ui', ...words], { env });
  expect(await complain([])).toContain('temper ui shows a new key on a terminal only, and needs one in TEMPER_UI_KEY');
  expect(await complain(['--host', '10.0.0.5'])).toContain('--host 10.0.0.5 is open to other machines and needs a key');
  expect(await complain(['--host', '0.0.0.0'], { TEMPER_UI_KEY: KEY })).toContain('--host 0.0.0.0 must come');
  expect(await complain(['--store', 'nothing'], { TEMPER_UI_KEY: KEY })).toContain('--store must be a store');
  expect(await complain(['--run', 'demo'], { TEMPER_UI_KEY: KEY })).toContain('--run has no effect without --export');
});
