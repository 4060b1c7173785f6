/** More scenarios than one blob holds: how they are stored, read, verified, copied and kept. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { createScenarioReader } from '../../activities/scenario-reader.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { encodeJsonLines } from '../../store/bytes/json.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { scenarioPartsKey, scenariosKey } from '../../store/layout.ts';
import { copyRun } from '../../store/records/copy/copy-run.ts';
import { planGarbage } from '../../store/records/retention/garbage.ts';
import { readStoredScenarios } from '../../store/records/runs/run-reader.ts';
import { blobsOfScenarios, openScenarioFile } from '../../store/records/runs/scenario-files.ts';
import { verifyRun } from '../../store/records/verify/verify-run.ts';
import { call, openWorld } from './world.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const COUNT = 2000;
const text = 'x'.repeat(10_000);
const scenarioOf = (index: number) => ({ id: `s${index}`, text });

function* many(): Generator<ReturnType<typeof scenarioOf>> {
  for (let index = 0; index < COUNT; index++) yield scenarioOf(index);
}

const configOf = (run: string) => defaultRunConfig({ run, agent: 'guess', baseModel: 'pocket' });
const world = await openWorld({ scenarios: many, evalScenarios: [{ id: 'e0' }, { id: 'e1' }] });
const prepared = await call(world.activities.prepare, { config: configOf('demo') });

/** A store that counts the bytes of blobs that are read. */
class CountingStore extends FileStore {
  bytes = 0;

  override async getBlob(ref: Parameters<FileStore['getBlob']>[0]): Promise<Uint8Array> {
    this.bytes += ref.bytes;
    return super.getBlob(ref);
  }
}

test('they are parts of about a mebibyte, which an index names, without a copy for people', async () => {
  expect(prepared).toMatchObject({ trainScenarios: COUNT, evalScenarios: 2 });
  const { parts } = await openScenarioFile(world.store, prepared.scenarios);
  expect(parts).toHaveLength(Math.ceil((COUNT * 10_040) / 1024 ** 2));
  expect(parts?.reduce((sum, { scenarios }) => sum + scenarios, 0)).toBe(COUNT + 2);
  expect(Math.max(...parts!.map(({ blob }) => blob.bytes))).toBeLessThan(1.1 * 1024 ** 2);
  expect(prepared.scenarios.bytes).toBeLessThan(8192);
  expect(await world.store.read(scenariosKey('demo'))).toBeNull();
  expect(await call(world.activities.prepare, { config: configOf('again') })).toEqual(prepared);
});

test('a worker reads the index and the parts of its scenarios, once', async () => {
  const store = new CountingStore(world.root);
  const readScenario = createScenarioReader(store);
  for (const index of [0, 1, COUNT - 1, 1])
    expect(await readScenario(prepared.scenarios, index)).toEqual(scenarioOf(index));
  expect(await readScenario(prepared.scenarios, COUNT + 1)).toEqual({ id: 'e1' });
  expect(store.bytes).toBeLessThan(3 * 1024 ** 2);
  await expect(readScenario(prepared.scenarios, COUNT + 2)).rejects.toThrow(`one of the ${COUNT + 2} in`);
});

test('some of them are read without the others', async () => {
  const store = new CountingStore(world.root);
  const lines = await readStoredScenarios(store, prepared, COUNT - 1, COUNT + 1);
  expect(lines.map(({ id }) => id)).toEqual([`s${COUNT - 1}`, 'e0']);
  expect(store.bytes).toBeLessThan(2.2 * 1024 ** 2);
  expect((await readStoredScenarios(store, prepared)).map(({ id }) => id)).toEqual([
    ...Array.from({ length: COUNT }, (_, index) => `s${index}`),
    'e0',
    'e1',
  ]);
});

test('garbage collection keeps them, a copy has them, and verification finds the one that is broken', async () => {
  expect((await planGarbage(world.store, Date.now() + 1e9)).objects).toEqual([]);
  const root = temporaryFolder();
  const copy = new FileStore(root);
  const options = {
    isThorough: true,
    withPruned: false,
    signal: new AbortController().signal,
    onStep: () => undefined,
  };
  await copyRun(world.store, copy, 'demo', options);
  const problems = async () => (await verifyRun(copy, 'demo')).findings.problems.map(({ object }) => object);
  expect(await problems()).toEqual(await verifyRun(world.store, 'demo').then(({ findings }) => findings.problems));
  const [part] = await blobsOfScenarios(copy, prepared.scenarios);
  const names = scenarioPartsKey('demo', prepared.scenarios.sha256);
  for (const key of [part!.key, names]) rmSync(join(root, key));
  expect(await problems()).toEqual([part!.key, names]);
  await copyRun(world.store, copy, 'demo', options);
  expect(await problems()).toEqual([]);
});

test('few scenarios are one blob of the same bytes as ever', async () => {
  const few = await openWorld({ scenarios: [{ id: 'a' }, { id: 'b' }], evalScenarios: [{ id: 'é' }] });
  const { scenarios } = await call(few.activities.prepare, { config: configOf('few') });
  const bytes = encodeJsonLines(['a', 'b', 'é'].map((id) => ({ id, scenario: { id } })));
  expect(scenarios).toMatchObject({ sha256: hashBytes(bytes), bytes: bytes.length });
  expect(await few.store.read(scenariosKey('few'))).toEqual(Buffer.from(bytes));
});
