import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { buildGoProgram } from '../../../workers/install/go-program.ts';
import { fakePrograms, type FakePrograms } from './fake-programs.ts';

let programs: FakePrograms;
let folder: string;

beforeEach(() => {
  programs = fakePrograms();
  folder = join(programs.folder, 'partial');
  mkdirSync(folder);
});

/** Go with its caches in a folder: `env` tells them, and `install` writes into those that it is given. */
function addGo(caches: string): void {
  programs.add(
    'go',
    `const { GOPATH = '${caches}', GOMODCACHE = GOPATH + '/mod', GOCACHE = GOPATH + '/build', GOFLAGS, GOBIN } = process.env;
const places = [GOPATH, GOMODCACHE, GOCACHE];
if (args[0] === 'env') console.log(places.join('\\n'));
else {
  for (const place of places) fs.mkdirSync(place, { recursive: true });
  fs.writeFileSync(GOBIN + '/tool', [...places, GOFLAGS].join('\\n'));
}`,
  );
}

async function build(): Promise<string[]> {
  const env = { ...programs.env, GOFLAGS: '-trimpath' };
  await buildGoProgram(folder, 'tool', { source: 'host/tool@v1', what: 'building a tool', env });
  expect(readdirSync(folder)).toEqual(['tool']);
  return readFileSync(join(folder, 'tool'), 'utf8').split('\n');
}

it('builds with the caches of the user', async () => {
  const caches = join(programs.folder, 'go');
  addGo(caches);
  expect(await build()).toEqual([caches, join(caches, 'mod'), join(caches, 'build'), '-trimpath']);
});

it('builds with caches of its own, removed afterwards, for a user without a home that can be written', async () => {
  const file = join(programs.folder, 'a-file');
  writeFileSync(file, '');
  addGo(file);
  const places = await build();
  expect(places.pop()).toBe('-trimpath -modcacherw');
  expect(places).toHaveLength(3);
  for (const place of places) expect([place.startsWith(folder), existsSync(place)]).toEqual([true, false]);
});
