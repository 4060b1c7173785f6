import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { openStore } from '../../store/bytes/open-store.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn, runCli } from './run-cli.ts';

const DAY_MS = 86_400_000;

test('garbage is told by kind, and removed when it is asked for', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { run: 'failed', steps: 1, state: { state: 'failed' } });
  const root = join(project, '.temper', 'store');
  const store = await openStore(root);
  const { key } = await store.putBlob(Buffer.alloc(2_500_000));
  const journal = await store.openJournal('runs/failed/journal/0.2/0');
  journal.append(Buffer.from('paid'));
  journal.close();
  const torn = 'blobs/.abc.77.0a1b2c3d.tmp';
  writeFileSync(join(root, torn), 'torn');
  await store.replace('runs/half/prepared.json', Buffer.from('{}'));
  const gc = (...flags: string[]) => runCli(project, ['gc', ...flags]);
  expect(await gc()).toEqual({
    exitCode: 0,
    stdout: expect.stringMatching(/^note {2}blobs are not looked for: .*runs\/half.*\nno garbage$/) as string,
    stderr: '',
  });
  const then = new Date(Date.now() - 5 * DAY_MS);
  const old = [key, torn, 'runs/failed/journal/0.2/0/0.journal', 'runs/half/prepared.json'];
  for (const name of old) utimesSync(join(root, name), then, then);
  expect((await gc('--older-than', '1w')).stdout).toContain('no garbage');
  const { stdout } = await gc();
  expect(stdout).toMatch(/^unfinished writes +1 +4 B +–$/m);
  expect(stdout).toMatch(/^blobs that nothing names +1 +2.5 MB +–$/m);
  expect(stdout).toMatch(/^journals of ended runs +1 +4 B +failed$/m);
  expect(stdout).toMatch(/^folders without a run +1 +2 B +half$/m);
  expect(stdout).toMatch(/4 objects with 2.5 MB would be removed; pass --remove to remove them$/);
  expect(await store.read(key)).toHaveLength(2_500_000);
  const told = JSON.parse((await gc('--json')).stdout) as { objects: { kind: string; key: string }[] };
  expect(told).toMatchObject({ removed: false, bytes: 2_500_010, notes: [] });
  expect(told.objects.map((object) => `${object.kind} ${object.key}`).toSorted()).toEqual([
    `blob ${key}`,
    'folder runs/half/prepared.json',
    'journal runs/failed/journal/0.2/0/0.journal',
    `unfinished ${torn}`,
  ]);
  expect((await gc('--remove', '--older-than', '4d')).stdout).toContain('4 objects with 2.5 MB removed');
  expect((await gc()).stdout).toBe('no garbage');
  expect(await store.read(key)).toBeNull();
});

test('an age that is none, or too low, is refused', async () => {
  const project = temporaryProject();
  const complaint = (age: string) => complaintIn(project, ['gc', '--older-than', age]);
  for (const age of ['23h', '0d', 'soon'])
    expect(await complaint(age)).toContain('--older-than must be a number of days or weeks, at least 1d, got');
});
