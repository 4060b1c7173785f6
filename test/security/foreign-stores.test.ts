/** A store that somebody else wrote: small files that unpack to large ones, and links to what is not in it. */
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { FileStore } from '../../store/bytes/file-store.ts';
import { foreignFileSystem } from '../../store/bytes/foreign-file-system.ts';
import { MAX_ROLLOUT_BYTES } from '../../core/contract/wire-constants.ts';
import {
  decodeRollouts,
  encodeRollouts,
  type AttemptRecord,
  type RolloutHeader,
} from '../../store/records/groups/trajectories.ts';
import { writeFixtureRun } from '../cli/fixture-store.ts';
import { runCli } from '../cli/run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('rollouts that unpack to more than the bound are refused before they are unpacked', async () => {
  const bomb = gzipSync(Buffer.alloc(MAX_ROLLOUT_BYTES + 1, ' '), { level: 9 });
  expect(bomb.length).toBeLessThan(MAX_ROLLOUT_BYTES / 500);
  const before = process.memoryUsage().rss;
  await expect(decodeRollouts(bomb, 'runs/x')).rejects.toMatchObject({
    type: 'StoreCorrupt',
    message: 'runs/x must be gzipped JSON lines of at most 256 MiB, but is not; restore it from a copy',
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(3 * MAX_ROLLOUT_BYTES);
});

const ATTEMPT = { attempt: 0, logs: ['x'.repeat(MAX_ROLLOUT_BYTES / 4)] } as unknown as AttemptRecord;

test('what an evaluation played is written within the same bound, and the flag to lower is named', async () => {
  const encoding = encodeRollouts({ header: {} as RolloutHeader, attempts: [ATTEMPT, ATTEMPT, ATTEMPT, ATTEMPT] });
  await expect(encoding).rejects.toMatchObject({
    type: 'BadConfig',
    message:
      'the attempts of an evaluation must be at most 256 MiB as JSON, got 256 MiB; lower --eval-scenarios, --max-tokens or the number of calls of an attempt',
  });
});

/** A project, and somebody else's store with a run in it. */
async function foreign(): Promise<{ project: string; store: string; secret: string }> {
  const project = temporaryFolder();
  const store = join(temporaryFolder(), 'store');
  await writeFixtureRun(project, { steps: 1, storeUri: store });
  const secret = join(temporaryFolder(), 'secret');
  await writeFile(secret, 'a private key');
  return { project, store, secret };
}

const pull = (project: string, store: string) => runCli(project, ['checkpoints', 'pull', 'demo', store]);

async function contents(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  return (await Promise.all(files.map((file) => readFile(join(file.parentPath, file.name), 'latin1')))).join('\n');
}

test('pull leaves out links, pipes and folders behind links', async () => {
  const { project, store, secret } = await foreign();
  const run = join(store, 'runs', 'demo');
  await symlink(secret, join(run, 'notes.json'));
  await symlink(join(secret, '..'), join(run, 'more'));
  execFileSync('mkfifo', [join(run, 'pipe.json')]);
  const { exitCode, stderr } = await pull(project, store);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const pulled = join(project, '.temper', 'store');
  expect(await contents(pulled)).not.toContain('a private key');
  expect(await readdir(join(pulled, 'runs', 'demo'))).not.toContain('notes.json');
});

test.each(['runs/demo/state.json', 'runs/demo/run.json', 'runs/demo/branches', 'runs/demo', 'runs'])(
  'pull refuses a store whose %s is a link',
  async (key) => {
    const { project, store, secret } = await foreign();
    const path = join(store, key);
    const away = join(secret, '..', 'away');
    await mkdir(join(away, '..'), { recursive: true });
    await rename(path, away);
    await symlink(away, path);
    const { exitCode, stderr } = await pull(project, store);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(path);
    expect(stderr).toContain(' must be a file or folder of the store itself');
    await rm(path);
  },
);

test('a folder that becomes a link while a file is read hands out nothing', async () => {
  const { store, secret } = await foreign();
  const [folder, away] = [join(store, 'runs', 'demo'), join(store, 'runs', 'away')];
  const outside = join(secret, '..');
  await writeFile(join(outside, 'run.json'), 'a private key');
  const files = foreignFileSystem(store);
  for (let ticks = 0; ticks < 150; ticks++) {
    const reading = files.readFile(join(folder, 'run.json')).catch(() => null);
    for (let tick = 0; tick < ticks % 15; tick++) await new Promise((resolve) => setImmediate(resolve));
    renameSync(folder, away);
    symlinkSync(outside, folder);
    expect(Buffer.from((await reading) ?? []).toString()).not.toContain('a private key');
    rmSync(folder);
    renameSync(away, folder);
  }
  expect(await files.readFile(join(folder, 'run.json'))).not.toBeNull();
});

test('a store of one’s own may stand behind links: it is the user who put them there', async () => {
  const { store, secret } = await foreign();
  await rename(join(store, 'runs'), join(secret, '..', 'runs'));
  await symlink(join(secret, '..', 'runs'), join(store, 'runs'));
  expect(await new FileStore(store).read('runs/demo/run.json')).not.toBeNull();
});

test('the folder that a person names may be a link itself', async () => {
  const { project, store } = await foreign();
  await symlink(store, `${store}-link`);
  expect((await pull(project, `${store}-link`)).exitCode).toBe(0);
});
