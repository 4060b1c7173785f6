import { readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tryLock } from '../../views/index/index-lock.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('one process at a time has the lock, until it lets go', async () => {
  const file = join(temporaryFolder(), 'demo', 'lock');
  const first = await tryLock(file);
  expect(await tryLock(file)).toBeNull();
  await first!.release();
  const second = await tryLock(file);
  expect(second).not.toBeNull();
  await second!.release();
});

test('a lock that nobody renews is taken over, and its first holder does not remove it', async () => {
  const file = join(temporaryFolder(), 'lock');
  const lost = await tryLock(file);
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(file, longAgo, longAgo);
  const taken = await tryLock(file);
  const token = await readFile(file, 'utf8');
  await lost!.release();
  expect(await readFile(file, 'utf8')).toBe(token);
  await taken!.release();
  await expect(readFile(file)).rejects.toMatchObject({ code: 'ENOENT' });
});
