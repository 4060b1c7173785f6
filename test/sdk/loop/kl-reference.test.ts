/** `klReference` of `model.train`: which checkpoints it takes, and what keeps their adapters. */
import { expect, test } from 'vitest';
import type { BlobRef } from '../../../core/contract/contract.ts';
import { decodeJson, encodeJson } from '../../../store/bytes/json.ts';
import { manifestKey } from '../../../store/layout.ts';
import { readContents } from '../../../store/records/copy/contents.ts';
import type { Manifest } from '../../../store/records/runs/manifest.ts';
import { planPrune } from '../../../store/records/retention/prune.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { FakeWorld } from './fake-backend.ts';
import { gather } from './gather-one.ts';

const KL = { klCoefficient: 0.1 };

const world = FakeWorld.ofEachTest();

/** A step whose blobs are in the store, as the trainer leaves them there; the fake one writes manifests alone. */
async function commitBlobs(run: string, step: number, said: Partial<Manifest> = {}): Promise<BlobRef> {
  const key = manifestKey({ run, branch: 0, step });
  const manifest = decodeJson((await world.store.read(key))!, key) as Manifest;
  const blob = (name: string) => world.store.putBlob(new TextEncoder().encode(`${name} of ${run}@${step}`));
  const blobs = { adapter: await blob('adapter'), adapterConfig: await blob('config'), optimizer: await blob('state') };
  await world.store.replace(key, encodeJson({ ...manifest, ...blobs, ...said }));
  return blobs.adapter;
}

async function makeTaught({ rank = 16, steps = 1 } = {}): Promise<BlobRef> {
  const taught = await world.model({ name: 'taught', lora: { rank } });
  for (let step = 1; step <= steps; step++) await taught.train(await gather(taught));
  return commitBlobs('demo.taught', 1);
}

const trained = () => world.works.flatMap(({ kind, input }) => (kind === 'train' ? [input] : [])).at(-1)!.train;

test('a step is planned with the adapter of a checkpoint, by its hash, and with that of no other step', async () => {
  const adapter = await makeTaught();
  const model = await world.model();
  const groups = await gather(model);
  await model.train(groups, { ...KL, klReference: 'demo.taught@1' });
  expect(trained().klReference).toEqual(adapter);
  await expect(model.train(groups, KL)).rejects.toMatchObject({ type: 'StepConflict' });
  await model.train(await gather(model), KL);
  expect(trained()).not.toHaveProperty('klReference');
});

test.each([
  ['demo.taught', /must name one checkpoint as RUN@STEP, got "demo\.taught"; a restarted script must find the same/],
  ['demo.taught@latest', /must name one checkpoint as RUN@STEP, got "demo\.taught@latest"/],
  [
    'demo.taught@0',
    /must be trained, but nothing of demo\.taught@0 is, so it is the base model; leave klReference out/,
  ],
  ['demo.taught@7', /demo\.taught@7 is not committed \(the newest before it is demo\.taught@1\)/],
  ['demo.nobody@1', /no run demo\.nobody in the store/],
])('%s is refused', async (klReference, message) => {
  await makeTaught();
  await commitBlobs('demo.taught', 0);
  const model = await world.model();
  await expect(model.train(await gather(model), { ...KL, klReference })).rejects.toThrow(message);
});

test('so is a checkpoint of another shape or of another base model, and one without a coefficient', async () => {
  await makeTaught({ rank: 8 });
  const model = await world.model();
  const groups = await gather(model);
  const train = (options: object) => model.train(groups, { klReference: 'demo.taught@1', ...options });
  await expect(train(KL)).rejects.toThrow(
    'klReference of model.train must have the LoRA options of demo.one: demo.taught@1 has rank 8, demo.one 16; name another checkpoint',
  );
  const full = await world.model({ name: 'full', lora: null });
  await full.train(await gather(full));
  await commitBlobs('demo.full', 1);
  await expect(train({ ...KL, klReference: 'demo.full@1' })).rejects.toThrow(
    'must train the same: demo.full@1 has all weights, demo.one trains a LoRA adapter',
  );
  const same = await world.model({ name: 'same' });
  await same.train(await gather(same));
  await commitBlobs('demo.same', 1);
  await expect(train({ klReference: 'demo.same@1' })).rejects.toThrow(/klReference has no effect with klCoefficient 0/);
  await commitBlobs('demo.same', 1, { baseModelSha256: 'b'.repeat(64) });
  await expect(train({ ...KL, klReference: 'demo.same@1' })).rejects.toThrow(
    /must have the base model of demo\.one, pocket \([0-9a-f]{64}\), but demo\.same@1 has pocket \(b{64}\)/,
  );
});

test('an adapter that lists all modules has the shape of one that trains them all', async () => {
  const modules = ['v_proj', 'q_proj'];
  const adapterConfig = await world.store.putBlob(encodeJson({ target_modules: modules }));
  await makeTaught();
  await commitBlobs('demo.taught', 1, { adapterConfig });
  const model = await world.model({ lora: { targetModules: modules.toReversed() } });
  await model.train(await gather(model), { ...KL, klReference: 'demo.taught@1' });
  expect(trained()).toHaveProperty('klReference');
  const fewer = await world.model({ name: 'fewer', lora: { targetModules: ['q_proj'] } });
  await expect(fewer.train(await gather(fewer), { ...KL, klReference: 'demo.taught@1' })).rejects.toThrow(
    'demo.taught@1 has targetModules ["q_proj","v_proj"], demo.fewer ["q_proj"]',
  );
});

test('it is kept, copied and verified for the steps that name it, of another model or of the same', async () => {
  const adapter = await makeTaught({ steps: 4 });
  const lean = { keepLast: 1, keepBest: [], keepEvery: null };
  const becauseOf = async (run: string) =>
    (await planPrune(world.store, run, lean)).kept.find(({ checkpoint }) => checkpoint.step === 1)?.because;
  expect(await becauseOf('demo.taught')).toBeUndefined();

  const model = await world.model();
  for (let step = 1; step <= 2; step++) await model.train(await gather(model));
  const own = await commitBlobs('demo.one', 1);
  await model.train(await gather(model), { ...KL, klReference: model.getInferenceName(1) });
  expect(trained().klReference).toEqual(own);
  await model.train(await gather(model), { ...KL, klReference: 'demo.taught@1' });
  expect(await becauseOf('demo.taught')).toBe('the run demo.one is compared with it');
  expect(await becauseOf('demo.one')).toBe('the run demo.one is compared with it');
  const { blobs } = await readContents(world.store, 'demo.one');
  expect(blobs).toEqual([own, adapter]);

  const problems = async () => (await verifyRun(world.store, 'demo.one')).findings.problems.map(({ object }) => object);
  expect(await problems()).not.toContain(adapter.key);
  await world.store.removeBlob(adapter);
  expect(await problems()).toContain(adapter.key);
});
