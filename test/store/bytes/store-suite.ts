/** Behaviour that every store shares, wherever it keeps its bytes. */
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';

import type { Store, StoredObject } from '../../../store/store.ts';
import { bytes, failureOf, text } from './failure-of.ts';

export interface StoreWorld {
  /** The same store each time, as another process of this host opens it. */
  open(): Promise<Store>;
  /** The file with a key's bytes. */
  file(key: string): string;
}

const JOURNAL = 'runs/a/journal/0.1/0';

export function storeSuite(makeWorld: () => StoreWorld): void {
  let world: StoreWorld;
  let store: Store;
  beforeEach(async () => {
    world = makeWorld();
    store = await world.open();
  });

  const collect = async (prefix: string): Promise<string[]> => {
    const keys = [];
    for await (const key of store.list(prefix)) keys.push(key);
    return keys;
  };

  test('a blob is found under the hash of its bytes, and put twice it is one file', async () => {
    const ref = await store.putBlob(bytes('abc'));
    expect(ref).toEqual({ key: `blobs/${ref.sha256}`, sha256: ref.sha256, bytes: 3 });
    expect(await store.putBlob(bytes('abc'))).toEqual(ref);
    expect(text(await store.getBlob(ref))).toBe('abc');
    expect(await collect('blobs')).toEqual([ref.key]);
  });

  test('an empty blob is one as well', async () => {
    const ref = await store.putBlob(new Uint8Array());
    expect(await store.getBlob(ref)).toHaveLength(0);
  });

  test('a blob with other bytes, or none, is corrupt', async () => {
    const ref = await store.putBlob(bytes('abc'));
    writeFileSync(world.file(ref.key), 'abd');
    const flipped = await failureOf(store.getBlob(ref));
    expect(flipped).toMatchObject({ type: 'StoreCorrupt' });
    expect(flipped.message).toContain(ref.key);
    expect(flipped.message).toContain('restore it');
    rmSync(world.file(ref.key));
    expect((await failureOf(store.getBlob(ref))).message).toContain('is missing');
  });

  test('a blob of another length is put again', async () => {
    const ref = await store.putBlob(bytes('abc'));
    writeFileSync(world.file(ref.key), 'ab');
    await store.putBlob(bytes('abc'));
    expect(text(await store.getBlob(ref))).toBe('abc');
  });

  test('of many who publish under one key one wins, and all get its bytes', async () => {
    const stores = await Promise.all(Array.from({ length: 20 }, () => world.open()));
    const published = await Promise.all(
      stores.map((each, index) => each.publish('runs/a/run.json', bytes(`v${index}`))),
    );
    expect(published.filter(({ created }) => created)).toHaveLength(1);
    const winner = text(published.find(({ created }) => created)?.bytes ?? null);
    expect(new Set(published.map((each) => text(each.bytes)))).toEqual(new Set([winner]));
    expect(text(await (await world.open()).read('runs/a/run.json'))).toBe(winner);
    expect(await collect('runs/a')).toEqual(['runs/a/run.json']);
  });

  test('what is displayed is replaced', async () => {
    await store.replace('runs/a/state.json', bytes('1'));
    await store.replace('runs/a/state.json', bytes('2'));
    expect(text(await store.read('runs/a/state.json'))).toBe('2');
    expect(await store.read('runs/a/none.json')).toBeNull();
  });

  test('no bytes stand where keys only begin', async () => {
    await store.replace('runs/a/state.json', bytes('1'));
    expect(await collect('runs/a/none')).toEqual([]);
    expect(await collect('run')).toEqual([]);
    expect(await store.read('runs/a/state')).toBeNull();
  });

  test('a folder lists its children in order, folders marked', async () => {
    const keys = ['runs/b/run.json', 'runs/a/run.json', 'runs/a-b/run.json', 'runs/c', 'runs/c.d', 'runs/B/run.json'];
    for (const key of keys) await store.replace(key, bytes('x'));
    expect(await collect('runs')).toEqual(['runs/B/', 'runs/a/', 'runs/a-b/', 'runs/b/', 'runs/c', 'runs/c.d']);
    expect(await collect('nothing/here')).toEqual([]);
  });

  test('the id of a store is made once', async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => (await world.open()).id()));
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
    await store.checkWritable();
    expect(await (await world.open()).id()).toBe(ids[0]);
  });

  test.each(['../x', '/etc/passwd', 'a//b', 'a/./b', 'a/../../b', '', 'a\\b', 'a/.hidden', 'a\0b'])(
    'the key %j leads nowhere',
    async (key) => {
      const ref = { key, sha256: '0'.repeat(64), bytes: 1 };
      const asked = [
        store.publish(key, bytes('x')),
        store.replace(key, bytes('x')),
        store.read(key),
        store.getBlob(ref),
      ];
      for (const failure of await Promise.all(asked.map(failureOf)))
        expect(failure).toMatchObject({ type: 'BadConfig' });
      await expect(collect(key)).rejects.toMatchObject({ type: 'BadConfig' });
      expect(existsSync(world.file('../x'))).toBe(false);
    },
  );

  test('each writer of a journal has a segment of its own, and who comes later reads them all', async () => {
    const first = await store.openJournal(JOURNAL);
    const second = await (await world.open()).openJournal(JOURNAL);
    second.append(bytes('b'));
    first.append(bytes('a'));
    first.append(bytes('a'));
    const third = await store.openJournal(JOURNAL);
    expect(third.existing).toHaveLength(2);
    expect(third.existing.map(text)).toEqual(expect.arrayContaining(['aa', 'b']));
    third.append(bytes('c'));
    const fourth = await (await world.open()).openJournal(JOURNAL);
    expect(fourth.existing.map(text).at(-1)).toBe('c');
    for (const journal of [first, second, third, fourth]) journal.close();
    expect(() => first.append(bytes('late'))).toThrow(/closed/);
  });

  test('removed journals are gone, and nothing else is', async () => {
    for (const prefix of ['runs/a/journal/0.1/0', 'runs/a/journal/0.1/eval', 'runs/a/journal/0.10/0']) {
      const journal = await store.openJournal(prefix);
      journal.append(bytes(prefix));
      journal.close();
    }
    await store.replace('runs/a/state.json', bytes('state'));
    await store.removeFolder('runs/a/journal/0.1');
    await store.removeFolder('runs/a/journal/0.2');
    expect((await store.openJournal('runs/a/journal/0.1/0')).existing).toEqual([]);
    expect((await store.openJournal('runs/a/journal/0.1/eval')).existing).toEqual([]);
    expect((await store.openJournal('runs/a/journal/0.10/0')).existing.map(text)).toEqual(['runs/a/journal/0.10/0']);
    expect(text(await store.read('runs/a/state.json'))).toBe('state');
  });

  test('objects are described with size and age; an old blob that is put again counts as written now, and is not removed for its former age', async () => {
    const ref = await store.putBlob(bytes('abc'));
    await store.replace('runs/a/state.json', bytes('1'));
    const described = async (prefix: string): Promise<StoredObject[]> => {
      const objects = [];
      for await (const object of store.describe(prefix)) objects.push(object);
      return objects;
    };
    const longAgo = new Date(Date.UTC(2020, 1, 2));
    utimesSync(world.file(ref.key), longAgo, longAgo);
    const [old] = await described('blobs');
    expect(old).toEqual({ key: ref.key, bytes: 3, modifiedAtMs: longAgo.getTime() });
    await store.putBlob(bytes('abc'));
    expect(await store.removeUnchanged(old!)).toBe(false);
    const [fresh] = await described('blobs');
    expect(Date.now() - fresh!.modifiedAtMs).toBeLessThan(60_000);
    expect(await described('runs')).toMatchObject([{ key: 'runs/a/state.json', bytes: 1 }]);
    expect(await described('nothing/here')).toEqual([]);
    expect(await store.removeUnchanged(fresh!)).toBe(true);
    expect(await store.removeUnchanged(fresh!)).toBe(false);
    expect(await store.blobBytes(ref)).toBeNull();
  });

  test('stored bytes are those that were given', async () => {
    const content = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 7919) % 256);
    const ref = await store.putBlob(content);
    expect(Buffer.compare(readFileSync(world.file(ref.key)), content)).toBe(0);
    expect(Buffer.compare(await store.getBlob(ref), content)).toBe(0);
  });
}
