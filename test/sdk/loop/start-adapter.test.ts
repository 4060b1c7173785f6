import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { TrainableModel, type TrainableModelOptions } from '../../../sdk/index.ts';
import { hashBytes } from '../../../store/bytes/sha256.ts';
import { readRun } from '../../../store/records/runs/run-reader.ts';
import { LocalBackend } from '../../../workers/local-backend/local-backend.ts';
import { PEFT_CONFIG, writePeftAdapter } from '../../peft-folder.ts';
import { FakeWorld } from './fake-backend.ts';
import { gather } from './gather-one.ts';

const world = FakeWorld.ofEachTest();
let adapter: string;
beforeEach(async () => {
  adapter = join(world.folder, 'adapter');
  await writePeftAdapter(adapter);
});

test('a model begins with an adapter of PEFT, in its shape, and names its files by hash', async () => {
  const lora = { rank: 8, alpha: 24, targetModules: ['q_proj', 'v_proj'], rslora: true, layers: [1] };
  await world.model({ adapter, lora: { dropout: 0.1 } });
  const work = world.works.at(-1)!;
  expect(work).toMatchObject({ kind: 'initialise', input: { parent: null, lora: { ...lora, dropout: 0.1 } } });
  const { startAdapter } = (await readRun(world.store, 'demo.one'))!.file.config;
  expect(work.input).toMatchObject({ startAdapter });
  for (const ref of Object.values(startAdapter!)) expect(hashBytes(await world.store.getBlob(ref))).toBe(ref.sha256);

  const again = await world.model({ adapter, lora: { dropout: 0.1 } });
  await again.train(await gather(again));
  expect(world.works).toHaveLength(2);
  await writePeftAdapter(adapter, { ...PEFT_CONFIG, lora_alpha: 12 });
  await expect(world.model({ adapter, lora: { dropout: 0.1 } })).rejects.toThrow(/another configuration.*startAdapter/);
});

test('another shape, another base model, all weights and no adapter are refused, and leave no run behind', async () => {
  const refused = (options: Partial<TrainableModelOptions>) =>
    world.model({ adapter, ...options }).then(
      () => 'registered',
      (error: Error) => error.message.replaceAll(world.folder, '…'),
    );
  expect(await refused({ lora: { rank: 16 } })).toContain('adapter of TrainableModel has rank 8, but lora asks for 16');
  expect(await refused({ lora: null })).toContain('adapter of TrainableModel has no effect with lora: null');
  await writePeftAdapter(adapter, { ...PEFT_CONFIG, base_model_name_or_path: 'Qwen/Qwen3-4B' });
  expect(await refused({})).toContain('adapter of TrainableModel was trained on Qwen/Qwen3-4B, but baseModel');
  await rm(adapter, { recursive: true });
  expect(await refused({})).toContain('adapter of TrainableModel must be a folder with adapter_config.json');
  expect(await readRun(world.store, 'demo.one')).toBeNull();
});

test('a fork begins with the adapter of its parent', async () => {
  await world.model();
  const local = new LocalBackend({ folder: world.folder });
  const fork = new TrainableModel({ name: 'fork', project: 'demo', baseModel: 'pocket', adapter });
  await local.forkCheckpoint(fork, { fromModel: 'one' });
  await expect(fork.register(world.backend())).rejects.toThrow(
    'adapter of TrainableModel has no effect after forkCheckpoint (a fork begins with the adapter of its parent); leave one of them out',
  );
  await local.close();
});
