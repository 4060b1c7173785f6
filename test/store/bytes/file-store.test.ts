import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';

import type { TemperError } from '../../../core/contract/failures.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { nodeFileSystem, type FileSystem } from '../../../store/bytes/file-system.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import type { Store } from '../../../store/store.ts';
import { failingFileSystem } from './failing-file-system.ts';
import { bytes, failureOf, text } from './failure-of.ts';
import { storeSuite } from './store-suite.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

/** The folder around the store, which is the test's as well. */
let around: string;
let root: string;
beforeEach(() => {
  around = temporaryFolder();
  root = join(around, 'store');
  mkdirSync(root);
});

describe('a store in a folder', () => {
  storeSuite(() => ({ open: () => openStore(root), file: (key) => join(root, key) }));
});

test('temporary files are not listed, and none stays', async () => {
  const store = new FileStore(root);
  await store.putBlob(bytes('abc'));
  await Promise.all([1, 2].map((index) => store.publish('runs/run.json', bytes(`v${index}`))));
  expect(readdirSync(join(root, 'blobs'))).toHaveLength(1);
  expect(readdirSync(join(root, 'runs'))).toEqual(['run.json']);
  writeFileSync(join(root, 'runs', '.left-over.tmp'), '');
  const keys = [];
  for await (const key of store.list('runs')) keys.push(key);
  expect(keys).toEqual(['runs/run.json']);
});

test('writes that were not finished are found wherever they lie, by the names of both languages, and nothing else is', async () => {
  const store = new FileStore(root);
  await store.putBlob(bytes('abc'));
  const torn = [
    '.3f2504e0-4f89-41d3-9a0c-0305e82c3301.tmp',
    'blobs/.abc.77.0a1b2c3d.tmp',
    'runs/a/.manifest.json.9.ffffffff.tmp',
  ];
  mkdirSync(join(root, 'runs', 'a'), { recursive: true });
  for (const name of [...torn, 'runs/.of-somebody-else.tmp', 'runs/.hidden']) writeFileSync(join(root, name), 'torn');
  const found = [];
  for await (const object of store.unfinished()) found.push(object);
  expect(found.map(({ key }) => key).toSorted()).toEqual(torn.toSorted());
  expect(found.every((object) => object.bytes === 4)).toBe(true);
  expect(await Promise.all(found.map((object) => store.removeUnchanged(object)))).toEqual([true, true, true]);
  expect(existsSync(join(root, torn[1]!))).toBe(false);
  await expect(store.removeUnchanged({ ...found[0]!, key: '../x/.a.1.0a1b2c3d.tmp' })).rejects.toThrow('key');
});

test('a store is opened by folder or file URI, without touching the disk; others are refused', async () => {
  const folder = join(root, 'not yet', 'there');
  expect((await openStore(folder)).uri).toMatch(/^file:\/\/.*not%20yet\/there$/);
  const store = await openStore((await openStore(folder)).uri);
  expect(existsSync(folder)).toBe(false);
  await store.checkWritable();
  expect(readdirSync(folder)).toEqual([]);
  expect(await failureOf(openStore('ftp://x'))).toMatchObject({ type: 'BadConfig' });
});

test('a store in a place where a file stands says which folder and what to do', async () => {
  writeFileSync(join(root, 'file'), '');
  const failure = await failureOf(new FileStore(join(root, 'file', 'store')).checkWritable());
  expect(failure).toMatchObject({ type: 'StoreUnavailable' });
  expect(failure.message).toContain(join(root, 'file', 'store'));
  const store = new FileStore(root);
  const walk = async (objects: AsyncIterable<unknown>): Promise<void> => {
    for await (const object of objects) expect(object).toBeDefined();
  };
  for (const walked of [store.list('file'), store.describe('file'), new FileStore(join(root, 'file')).unfinished()])
    expect(await failureOf(walk(walked))).toMatchObject({ type: 'StoreUnavailable' });
});

test('a store that is made is closed to other users, whoever writes first; one that is there stays as it is', async () => {
  const mode = (folder: string) => statSync(folder).mode & 0o777;
  for (const [name, write] of [
    ['check', (store: Store) => store.checkWritable()],
    ['blob', (store: Store) => store.putBlob(bytes('abc'))],
    ['state', (store: Store) => store.replace('runs/a/state.json', bytes('{}'))],
  ] as const) {
    await write(new FileStore(join(around, name)));
    expect([name, mode(join(around, name))]).toEqual([name, 0o700]);
  }
  chmodSync(root, 0o770);
  await new FileStore(root).putBlob(bytes('abc'));
  expect([mode(root), mode(join(root, 'blobs'))]).toEqual([0o770, 0o777 & ~process.umask()]);
});

test('what is published is on the disk before it has its name, and its name before anybody hears of it', async () => {
  const done: string[] = [];
  const files: FileSystem = {
    ...nodeFileSystem,
    createFile: (file, content, durable) => {
      done.push(`create${durable ? ' durably' : ''}`);
      return nodeFileSystem.createFile(file, content, durable);
    },
    link: (existing, file) => {
      done.push('link');
      return nodeFileSystem.link(existing, file);
    },
    rename: (from, file) => {
      done.push('rename');
      return nodeFileSystem.rename(from, file);
    },
    syncFolder: (folder) => {
      done.push(`sync ${relative(root, folder)}`);
      return nodeFileSystem.syncFolder(folder);
    },
  };
  const store = new FileStore(root, files);
  await store.publish('runs/a/run.json', bytes('run'));
  expect(done.splice(0)).toEqual(['create durably', 'link', 'sync runs/a']);
  await store.putBlob(bytes('blob'));
  expect(done.splice(0)).toEqual(['create durably', 'rename', 'sync blobs']);
  await store.replace('schedules/a/schedule.json', bytes('{}'));
  expect(done).toEqual(['create durably', 'rename', 'sync schedules/a']);
});

describe.each(['ENOSPC', 'EROFS'])('a disk that refuses with %s', (code) => {
  const actions: Record<string, (store: Store) => Promise<unknown>> = {
    putBlob: (store) => store.putBlob(bytes('blob')),
    publish: (store) => store.publish('runs/a/run.json', bytes('run')),
    replace: (store) => store.replace('runs/a/state.json', bytes('state')),
    checkWritable: (store) => store.checkWritable(),
  };

  test.each(Object.keys(actions))(
    '%s fails typed at each write in turn, and succeeds later with whole bytes',
    async (name) => {
      const act = actions[name] ?? (() => Promise.reject(new Error(name)));
      const probe = failingFileSystem(code, Infinity);
      await act(new FileStore(join(root, 'probe'), probe.files));
      expect(probe.writes()).toBeGreaterThan(1);
      for (let failing = 0; failing < probe.writes(); failing++) {
        const folder = join(root, String(failing));
        const { files } = failingFileSystem(code, failing);
        const outcome = await act(new FileStore(folder, files)).then(
          () => null,
          (error: unknown) => error,
        );
        // A temporary file that cannot be removed is litter, not a failure.
        if (outcome !== null) expect(outcome).toMatchObject({ type: 'StoreUnavailable' });
        if (outcome !== null) expect((outcome as TemperError).message).toContain(folder);
        const healthy = new FileStore(folder);
        await act(healthy);
        const content = text(await healthy.read('runs/a/run.json'));
        expect(content === null || content === 'run').toBe(true);
      }
    },
  );
});

test('a journal that cannot be written takes no further record, and its torn tail is there for the next reader', async () => {
  const { files } = failingFileSystem('ENOSPC', 2);
  const journal = await new FileStore(root, files).openJournal('runs/a/journal/0.1/0');
  journal.append(bytes('first record'));
  expect(() => journal.append(bytes('second record'))).toThrow(/disk is full/);
  expect(() => journal.append(bytes('third'))).toThrow(/disk is full/);
  journal.close();
  const again = await new FileStore(root).openJournal('runs/a/journal/0.1/0');
  expect(again.existing.map(text)).toEqual(['first recordsecond rec']);
});

test('segments of a journal are numbered in the order of their first records', async () => {
  const store = new FileStore(root);
  const first = await store.openJournal('runs/a/journal/0.1/0');
  const second = await store.openJournal('runs/a/journal/0.1/0');
  second.append(bytes('b'));
  first.append(bytes('a'));
  const third = await store.openJournal('runs/a/journal/0.1/0');
  expect(third.existing.map(text)).toEqual(['b', 'a']);
});
