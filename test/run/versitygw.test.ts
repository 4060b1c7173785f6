import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { fakePrograms, type FakePrograms } from '../workers/install/fake-programs.ts';
import { findVersitygw } from './versitygw.ts';

let programs: FakePrograms;

beforeEach(() => {
  programs = fakePrograms();
});

const find = (env: NodeJS.ProcessEnv = {}) =>
  findVersitygw({ ...programs.env, TEMPER_CACHE: join(programs.folder, 'cache'), ...env });
const path = (name: string) => join(programs.folder, 'bin', name);

test('the S3 server of the tests is the one that is named, then the one on PATH', async () => {
  programs.add('versitygw', '');
  programs.add('mine', '');
  expect(await find()).toBe('versitygw');
  expect(await find({ TEMPER_VERSITYGW: path('mine') })).toBe(path('mine'));
  await expect(find({ TEMPER_VERSITYGW: path('none') })).rejects.toThrow(/cannot be run; correct or unset it/);
});

test('without one it is built once, and without Go the error says what to do', async () => {
  await expect(find()).rejects.toThrow(/install Go, or point TEMPER_VERSITYGW to one/);
  programs.add('go', `if (args[0] === 'install') fs.writeFileSync(process.env.GOBIN + '/versitygw', args.join(' '));`);
  const built = await find();
  expect(built).toContain(join(programs.folder, 'cache', 'versitygw'));
  expect(readFileSync(built, 'utf8')).toMatch(/^install -v github\.com\/versity\/versitygw\/cmd\/versitygw@v\d/);
  programs.add('go', 'process.exit(1);');
  expect(await find()).toBe(built);
});

test('a build that fails says so, and leaves nothing behind', async () => {
  programs.add('go', `if (args[0] === 'install') { console.error('no route to proxy'); process.exit(1); }`);
  await expect(find()).rejects.toThrow(/building versitygw failed: no route to proxy/);
  await expect(find()).rejects.toThrow(/building versitygw failed/);
});
