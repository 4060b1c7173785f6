import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stateOf, writeGenerated } from '../../../cli/scenarios/write-files.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

async function open() {
  const folder = temporaryFolder();
  return { folder, file: join(folder, 'a.jsonl'), store: await openStore(join(folder, 'store')) };
}

test('a file is missing, as it was generated, or a person’s own', async () => {
  const { file, store } = await open();
  expect(await stateOf(store, file)).toBe('missing');
  await writeGenerated(store, file, bytes('one\n'));
  expect(await stateOf(store, file)).toBe('generated');
  await writeGenerated(store, file, bytes('two\n'));
  expect(await readFile(file, 'utf8')).toBe('two\n');
  await writeFile(file, 'two, edited\n');
  expect(await stateOf(store, file)).toBe('own');
  await expect(writeGenerated(store, file, bytes('three\n'))).rejects.toThrow('nobody edited, but');
  expect(await readFile(file, 'utf8')).toBe('two, edited\n');
});

test('killed between its two files, the command replaces the first one by the same bytes and writes the other', async () => {
  const { folder, file, store } = await open();
  await writeGenerated(store, file, bytes('one\n'));
  // A process that was killed while it wrote leaves this behind.
  await writeFile(join(folder, 'b.jsonl.999.tmp'), 'hal');
  for (const name of ['a.jsonl', 'b.jsonl']) await writeGenerated(store, join(folder, name), bytes('one\n'));
  expect([await readFile(file, 'utf8'), await readFile(join(folder, 'b.jsonl'), 'utf8')]).toEqual(['one\n', 'one\n']);
});

test('a place where nothing can be written is named, and nothing is left there', async () => {
  const { folder, store } = await open();
  await writeFile(join(folder, 'taken'), '');
  const file = join(folder, 'taken', 'a.jsonl');
  await expect(writeGenerated(store, file, bytes('one\n'))).rejects.toThrow('(ENOTDIR); pass another one');
  await mkdir(join(folder, 'a.jsonl'));
  await expect(writeGenerated(store, join(folder, 'a.jsonl'), bytes('one\n'))).rejects.toThrow(
    '--out must be a file that can be read',
  );
  expect((await readdir(folder)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
