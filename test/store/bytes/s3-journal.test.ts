/** Journals of a store in a bucket: what is uploaded when, and what a host still has. Hosts are spool folders here. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';

import { openS3Store, type S3Store } from '../../../store/bytes/s3-store.ts';
import type { UploadLimits } from '../../../store/bytes/s3-journal.ts';
import { nodeFlags } from '../../../workers/process/module-path.ts';
import { BUCKET } from '../../s3-server.ts';
import { bytes, failureOf, text } from './failure-of.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { sharedS3 } from '../../shared-s3.ts';

const JOURNAL = 'runs/a/journal/0.1/0';
const APPENDER = fileURLToPath(new URL('append-and-wait.ts', import.meta.url));
/** For what happens behind the writer's back; a busy machine is slow. */
const WITHIN = { timeout: 20_000 };
const AT_ONCE: UploadLimits = { everyMs: 10, bytes: 1024 };
const NOT_SOON: UploadLimits = { everyMs: 3_600_000, bytes: 1024 };

const server = await sharedS3();
let hosts: string;
let prefix: string;
beforeEach(() => {
  hosts = temporaryFolder();
  prefix = randomUUID();
});

const open = (host: string, uploads: UploadLimits): Promise<S3Store> =>
  openS3Store({ bucket: BUCKET, prefix }, { spoolFolder: join(hosts, host), uploads });

/** Records that a host that has never seen this journal finds. */
async function seenElsewhere(): Promise<(string | null)[]> {
  const store = await open(randomUUID(), NOT_SOON);
  return (await store.openJournal(JOURNAL)).existing.map(text);
}

const spooled = async (host: string, store: S3Store): Promise<string[]> => {
  const folder = join(hosts, host, await store.id(), JOURNAL);
  return existsSync(folder) ? readdirSync(folder) : [];
};

test('a record is uploaded after a while, without another one and without an end', async () => {
  const store = await open('a', AT_ONCE);
  const journal = await store.openJournal(JOURNAL);
  journal.append(bytes('first'));
  await expect.poll(seenElsewhere, WITHIN).toEqual(['first']);
  await expect.poll(() => spooled('a', store), WITHIN).toEqual([]);
  journal.append(bytes('second'));
  await expect.poll(seenElsewhere, WITHIN).toEqual(['first', 'second']);
  journal.close();
});

test('many bytes are uploaded without waiting, and the rest at the end', async () => {
  const store = await open('a', NOT_SOON);
  const journal = await store.openJournal(JOURNAL);
  journal.append(bytes('short'));
  journal.append(new Uint8Array(NOT_SOON.bytes).fill(120));
  await expect.poll(seenElsewhere, WITHIN).toEqual([expect.stringMatching(/^shortx+$/)]);
  journal.append(bytes('rest'));
  await expect.poll(() => spooled('a', store), WITHIN).toHaveLength(1);
  journal.close();
  await expect.poll(seenElsewhere, WITHIN).toEqual([expect.stringMatching(/^shortx+$/), 'rest']);
  await expect.poll(() => spooled('a', store), WITHIN).toEqual([]);
});

test('a worker that ends in peace leaves nothing on its host', async () => {
  const store = await open('a', NOT_SOON);
  const journals = await Promise.all([1, 2, 3].map(() => store.openJournal(JOURNAL)));
  for (const journal of journals) {
    journal.append(bytes('x'));
    journal.close();
  }
  const left = async (): Promise<string[]> => {
    await store.close();
    return spooled('a', store);
  };
  await expect.poll(left, WITHIN).toEqual([]);
  expect(await seenElsewhere()).toEqual(['x', 'x', 'x']);
});

test('two workers on two hosts share no segment, and what each wrote stays together', async () => {
  const stores = await Promise.all([open('a', AT_ONCE), open('b', AT_ONCE)]);
  const journals = await Promise.all(stores.map((store) => store.openJournal(JOURNAL)));
  for (const round of [1, 2, 3]) {
    for (const [writer, journal] of journals.entries()) journal.append(bytes(`${writer}.${round} `));
    await expect.poll(async () => (await seenElsewhere()).join('').length, WITHIN).toBe(8 * round);
  }
  for (const journal of journals) journal.close();
  const seen = (await seenElsewhere()).join('');
  expect(['0.1 0.2 0.3 1.1 1.2 1.3 ', '1.1 1.2 1.3 0.1 0.2 0.3 ']).toContain(seen);
});

test('what a killed worker had not uploaded is found on its host', async () => {
  const child = spawn(process.execPath, [...nodeFlags(), APPENDER, prefix, join(hosts, 'a'), JOURNAL], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const again = await (await open('a', NOT_SOON)).openJournal(JOURNAL);
  expect(again.existing.map(text)).toEqual(['one two three']);
  expect(await seenElsewhere()).toEqual([]);
  again.append(bytes('after'));
  const third = await (await open('a', NOT_SOON)).openJournal(JOURNAL);
  expect(third.existing.map(text)).toEqual(['one two three', 'after']);
  for (const journal of [again, third]) journal.close();
});

test('while the server is away records are taken, and they are uploaded once it is back', async () => {
  const store = await open('a', AT_ONCE);
  const journal = await store.openJournal(JOURNAL);
  await server.kill();
  journal.append(bytes('one '));
  await expect.poll(async () => (await spooled('a', store)).length, WITHIN).toBe(1);
  journal.append(bytes('two '));
  journal.close();
  // The first uploads have failed as well by then.
  for (const key of ['x', 'y', 'z'])
    expect(await failureOf(store.read(key))).toMatchObject({ type: 'StoreUnavailable' });
  await store.close();
  expect(await spooled('a', store)).not.toEqual([]);
  await server.start();
  await expect.poll(async () => (await seenElsewhere()).join(''), WITHIN).toBe('one two ');
  await expect.poll(() => spooled('a', store), WITHIN).toEqual([]);
});

test('removed journals are gone from bucket and host, those that are on their way too', async () => {
  const store = await open('a', NOT_SOON);
  const journals = await Promise.all(Array.from({ length: 12 }, () => store.openJournal(JOURNAL)));
  for (const journal of journals) {
    journal.append(new Uint8Array(NOT_SOON.bytes));
    journal.append(bytes('more'));
    journal.close();
  }
  await store.removeFolder(JOURNAL);
  expect(await spooled('a', store)).toEqual([]);
  expect(await seenElsewhere()).toEqual([]);
});

test('a journal needs a folder on its host, and a usable one', async () => {
  const reading = await openS3Store({ bucket: BUCKET, prefix });
  expect(await failureOf(reading.openJournal(JOURNAL))).toMatchObject({ type: 'BadConfig' });
  await reading.removeFolder(JOURNAL);
  writeFileSync(join(hosts, 'file'), '');
  const failure = await failureOf((await open('file', NOT_SOON)).openJournal(JOURNAL));
  expect(failure).toMatchObject({ type: 'StoreUnavailable' });
  expect(failure.message).toContain(join(hosts, 'file'));
});
