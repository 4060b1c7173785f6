import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { findInstalledCli } from '../../../workers/install/temporal-cli.ts';
import { fakePrograms, type FakePrograms } from './fake-programs.ts';

let programs: FakePrograms;

beforeEach(() => {
  programs = fakePrograms();
});

const cli = (server: string) => `console.log('temporal version 1.5.1 (Server ${server}, UI 2.42.1)');`;
const find = (env: NodeJS.ProcessEnv = {}, databaseServer: string | null = null) =>
  findInstalledCli({ env: { ...programs.env, ...env }, cache: join(programs.folder, 'cache'), databaseServer });
const path = (name: string) => join(programs.folder, 'bin', name);

it('is taken from TEMPER_TEMPORAL_CLI, then from PATH', async () => {
  programs.add('temporal', cli('1.29.1'));
  programs.add('mine', cli('1.30.0'));
  expect(await find()).toEqual({ path: 'temporal', serverVersion: '1.29.1' });
  expect(await find({ TEMPER_TEMPORAL_CLI: path('mine') })).toEqual({ path: path('mine'), serverVersion: '1.30.0' });
});

it('is passed over on PATH where its server is too old or another one wrote the database', async () => {
  expect(await find()).toBeNull();
  programs.add('temporal', cli('1.22.0'));
  expect(await find()).toBeNull();
  programs.add('temporal', cli('1.30.0'));
  expect(await find({}, '1.29.1')).toBeNull();
  expect(await find({}, '1.30.0')).toMatchObject({ serverVersion: '1.30.0' });
});

it('is refused, with a remedy, where the user named one that does not fit', async () => {
  programs.add('mine', cli('1.30.0'));
  const env = { TEMPER_TEMPORAL_CLI: path('mine') };
  await expect(find(env, '1.29.1')).rejects.toThrow(
    /contains server 1\.30\.0, but the project's .temper\/temporal\.db was written by server 1\.29\.1; point/,
  );
  await expect(find({ TEMPER_TEMPORAL_CLI: path('none') })).rejects.toThrow(
    /must be Temporal's CLI, but it cannot be run; point/,
  );
});
