import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { TemperError } from '../../core/failures.ts';
import { FileStore } from '../../store/file-store.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/store.ts';
import { failingFileSystem } from './failing-file-system.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (content: Uint8Array | null): string | null => content && new TextDecoder().decode(content);

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'temper-store-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function failureOf(doing: Promise<unknown>): Promise<TemperError> {
  const error: unknown = await doing.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error instanceof TemperError) return error;
  throw new Error(`expected a TemperError, got ${String(error)}`);
}

test('a blob is found under the hash of its bytes, and put twice it is one file', async () => {
  const store = new FileStore(root);
  const ref = await store.putBlob(bytes('abc'));
  expect(ref).toEqual({ key: `blobs/${ref.sha256}`, sha256: ref.sha256, bytes: 3 });
  expect(await store.putBlob(bytes('abc'))).toEqual(ref);
  expect(text(await store.getBlob(ref))).toBe('abc');
  expect(readdirSync(join(root, 'blobs'))).toEqual([ref.sha256]);
});

test('a blob with other bytes, or none, is corrupt', async () => {
  const store = new FileStore(root);
  const ref = await store.putBlob(bytes('abc'));
  writeFileSync(join(root, ref.key), 'abd');
  expect(await failureOf(store.getBlob(ref))).toMatchObject({ type: 'StoreCorrupt' });
  rmSync(join(root, ref.key));
  expect((await failureOf(store.getBlob(ref))).message).toContain('is missing');
});

test('of many who publish under one key one wins, and all get its bytes', async () => {
  const stores = Array.from({ length: 16 }, () => new FileStore(root));
  const published = await Promise.all(
    stores.map((store, index) => store.publish('runs/a/run.json', bytes(`v${index}`))),
  );
  expect(published.filter(({ created }) => created)).toHaveLength(1);
  const winner = text(published.find(({ created }) => created)?.bytes ?? null);
  expect(new Set(published.map((each) => text(each.bytes)))).toEqual(new Set([winner]));
  expect(text(await new FileStore(root).read('runs/a/run.json'))).toBe(winner);
  expect(readdirSync(join(root, 'runs/a'))).toEqual(['run.json']);
});

test('what is displayed is replaced', async () => {
  const store = new FileStore(root);
  await store.replace('runs/a/state.json', bytes('1'));
  await store.replace('runs/a/state.json', bytes('2'));
  expect(text(await store.read('runs/a/state.json'))).toBe('2');
  expect(await store.read('runs/a/none.json')).toBeNull();
});

test('a folder lists its children in order, folders marked, temporary files hidden', async () => {
  const store = new FileStore(root);
  for (const key of ['runs/b/run.json', 'runs/a/run.json', 'runs/c']) await store.replace(key, bytes(''));
  writeFileSync(join(root, 'runs', '.left-over.tmp'), '');
  const collect = async (prefix: string): Promise<string[]> => {
    const keys = [];
    for await (const key of store.list(prefix)) keys.push(key);
    return keys;
  };
  expect(await collect('runs')).toEqual(['runs/a/', 'runs/b/', 'runs/c']);
  expect(await collect('nothing/here')).toEqual([]);
});

test('the id of a store is made once', async () => {
  const ids = await Promise.all([1, 2, 3].map(() => new FileStore(root).id()));
  expect(new Set(ids).size).toBe(1);
  expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
});

test.each(['../x', '/etc/passwd', 'a//b', 'a/./b', 'a/../../b', '', 'a\\b', 'a/.hidden', 'a\0b'])(
  'the key %j leads nowhere',
  async (key) => {
    const store = new FileStore(join(root, 'inner'));
    expect(await failureOf(store.publish(key, bytes('x')))).toMatchObject({ type: 'BadConfig' });
    expect(await failureOf(store.read(key))).toMatchObject({ type: 'BadConfig' });
    expect(await failureOf(store.getBlob({ key, sha256: '0'.repeat(64), bytes: 1 }))).toMatchObject({
      type: 'BadConfig',
    });
    expect(existsSync(join(root, 'x'))).toBe(false);
  },
);

test('a store is opened by folder or file URI, without touching the disk; others are refused', async () => {
  const folder = join(root, 'not yet', 'there');
  expect((await openStore(folder)).uri).toMatch(/^file:\/\/.*not%20yet\/there$/);
  const store = await openStore((await openStore(folder)).uri);
  expect(existsSync(folder)).toBe(false);
  await store.checkWritable();
  expect(readdirSync(folder)).toEqual([]);
  expect((await failureOf(openStore('s3://bucket/x'))).message).toContain('not in this version');
  expect(await failureOf(openStore('ftp://x'))).toMatchObject({ type: 'BadConfig' });
});

test('a store in a place where a file stands says which folder and what to do', async () => {
  writeFileSync(join(root, 'file'), '');
  const failure = await failureOf(new FileStore(join(root, 'file', 'store')).checkWritable());
  expect(failure).toMatchObject({ type: 'StoreUnavailable' });
  expect(failure.message).toContain(join(root, 'file', 'store'));
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

test('each writer of a journal has a segment of its own, numbered in the order of their first records', async () => {
  const store = new FileStore(root);
  const first = await store.openJournal('runs/a/journal/0.1/0');
  const second = await store.openJournal('runs/a/journal/0.1/0');
  second.append(bytes('b'));
  first.append(bytes('a'));
  first.append(bytes('a'));
  const third = await store.openJournal('runs/a/journal/0.1/0');
  expect(third.existing.map(text)).toEqual(['b', 'aa']);
  third.close();
  await store.removeJournals('runs/a/journal/0.1');
  expect((await store.openJournal('runs/a/journal/0.1/0')).existing).toEqual([]);
});
