/** `temper ui` and another user of the machine: what is read, what is answered, and what its cache gives away. */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../store/bytes/open-store.ts';
import type { AttemptsView } from '../../views/api/attempt-views.ts';
import { temporaryProject, writeFixtureRun } from '../cli/fixture-store.ts';
import { serveUi, type ServedUi } from '../cli/ui/served-ui.ts';
import { addOtherUser, type OtherUser } from './attackers.ts';

let other: OtherUser | string;
beforeAll(() => {
  other = addOtherUser();
});
afterAll(() => {
  if (typeof other !== 'string') other.remove();
});

/** A project that everybody may enter, and a cache as an earlier version made it. */
async function openToAll(): Promise<string> {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 2 });
  // Without an id, a store has no cache.
  await (await openStore(join(project, '.temper', 'store'))).id();
  chmodSync(project, 0o755);
  mkdirSync(join(project, 'cache', 'ui'), { recursive: true });
  for (const name of ['cache', 'cache/ui']) chmodSync(join(project, name), 0o755);
  return project;
}

async function fillIndex(ui: ServedUi): Promise<AttemptsView> {
  for (;;) {
    const found = await ui.view<AttemptsView>('runs/demo/attempts?limit=5');
    if (found.index.isComplete) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Files below the folder that this user can read. */
const WALK = `
  import { readdirSync, readFileSync } from 'node:fs';
  const readable = [];
  const walk = (folder) => {
    let entries = [];
    try { entries = readdirSync(folder, { withFileTypes: true }); } catch {}
    for (const entry of entries) {
      const path = folder + '/' + entry.name;
      if (entry.isDirectory()) walk(path);
      else try { readFileSync(path); readable.push(path); } catch {}
    }
  };
  walk(process.argv[1]);
  console.log(JSON.stringify(readable));`;

const ASK = `
  const [origin, ...paths] = process.argv.slice(1);
  const headers = { authorization: 'Bearer guessed', cookie: 'temper-ui-' + new URL(origin).port + '=guessed' };
  const answers = [];
  for (const path of paths) {
    const get = await fetch(origin + path, { headers, redirect: 'manual' });
    const body = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{}' };
    const post = await fetch(origin + path, body);
    answers.push([path, get.status, (await get.text()).length < 300, post.status]);
  }
  console.log(JSON.stringify(answers));`;

/** The server is of this process: it answers while the other user runs. */
async function askAsOther({ uid }: OtherUser, ...args: string[]): Promise<unknown> {
  const options = { uid, gid: uid, cwd: '/', env: { PATH: process.env['PATH'] }, timeout: 30_000 };
  const flags = ['--input-type=module', '-e', ASK, ...args];
  return JSON.parse((await promisify(execFile)(process.execPath, flags, options)).stdout);
}

describe('another user of the machine', () => {
  test('reads nothing of the cache, which is closed also where it was open before', async (context) => {
    if (typeof other === 'string') {
      context.skip(other);
      return;
    }
    const project = await openToAll();
    const ui = await serveUi(project);
    expect((await fillIndex(ui)).total).toBeGreaterThan(0);
    const files = readdirSync(join(project, 'cache/ui'), { recursive: true, encoding: 'utf8' });
    expect(files.some((file) => file.endsWith('attempts.log'))).toBe(true);
    expect(other.run(WALK, join(project, 'cache'))).toEqual([]);
  });

  test('is answered nothing without the cookie or the key, and does nothing', async (context) => {
    if (typeof other === 'string') {
      context.skip(other);
      return;
    }
    const ui = await serveUi(await openToAll());
    const { base } = await ui.enter();
    const paths = ['/', '/page.js', '/api/info', '/api/runs', '/api/links', '/api/actions', base, `${base}api/runs`];
    expect(await askAsOther(other, ui.origin, ...paths)).toEqual(paths.map((path) => [path, 401, true, 401]));
    expect(await askAsOther(other, ui.origin, '/open/guessed')).toEqual([['/open/guessed', 410, true, 410]]);
  });
});

describe('the cache of the index', () => {
  test.each([
    ['a link', (folder: string) => symlinkSync('..', folder)],
    ['open to others for writing', (folder: string) => mkdirSync(folder)],
  ])('is not kept in a folder that is %s: the search works, and nothing is written there', async (what, make) => {
    const project = await openToAll();
    const folder = join(project, 'cache', 'ui');
    await rm(folder, { recursive: true });
    make(folder);
    if (what !== 'a link') chmodSync(folder, 0o777);
    const ui = await serveUi(project);
    expect((await fillIndex(ui)).total).toBeGreaterThan(0);
    expect(readdirSync(folder).filter((name) => /^[0-9a-f]{32}$/.test(name))).toEqual([]);
  });

  test('has the mode 0700, whatever the umask', async () => {
    const project = await openToAll();
    await rm(join(project, 'cache'), { recursive: true });
    const before = process.umask(0);
    try {
      await fillIndex(await serveUi(project));
    } finally {
      process.umask(before);
    }
    const folder = join(project, 'cache', 'ui');
    const all = [folder, ...readdirSync(folder).map((name) => join(folder, name))];
    expect(all.length).toBe(2);
    for (const each of all) expect([existsSync(each), statSync(each).mode & 0o777]).toEqual([true, 0o700]);
  });
});
