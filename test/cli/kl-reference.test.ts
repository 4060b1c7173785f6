/** `--kl-reference`: which checkpoint's adapter a run is compared with, and which cannot be. */
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import type { BlobRef, RunConfig } from '../../core/contract/contract.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { manifestKey, prunedKey, runKey } from '../../store/layout.ts';
import { readManifest } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf } from './run-cli.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { run: 'demo', steps: 3 });
});

const NEW = ['agent.ts', '--run', 'new', '--base-model', 'pocket'];
const KL = ['--kl-coefficient', '0.1'];
const refusal = (...flags: string[]) => complaintIn(project, ['train', ...NEW, ...flags]);

async function plan(...flags: string[]): Promise<RunConfig> {
  return (await planTrain(contextOf(trainCommand, project, [...NEW, ...KL, ...flags]), 'estimate')).config;
}

async function adapterOf(step: number): Promise<BlobRef> {
  return (await readManifest(store, { run: 'demo', branch: 0, step }))!.adapter;
}

test('the plan names the adapter of the checkpoint by its bytes, for a run and for a fork', async () => {
  expect((await plan('--kl-reference', 'demo@2')).train.klReference).toEqual(await adapterOf(2));
  expect(await plan()).not.toHaveProperty('train.klReference');
  const words = ['agent.ts', '--from', 'demo@1', '--run', 'new', ...KL, '--kl-reference', 'demo@3'];
  const { config } = await planTrain(contextOf(trainCommand, project, words), 'estimate');
  expect(config.train.klReference).toEqual(await adapterOf(3));
});

test('latest is the one that the run began with, however far its own run is by now', async () => {
  const config = await plan('--kl-reference', 'demo@2');
  const file = { schema: 1, config, agentCodeSha256: 'e'.repeat(64), versions: {}, parent: null };
  await store.publish(runKey('new'), encodeJson(file));
  expect((await plan('--kl-reference', 'demo@latest')).train).toEqual(config.train);
  const [before, after] = [(await adapterOf(2)).sha256, (await adapterOf(3)).sha256];
  expect(await refusal(...KL, '--kl-reference', 'demo@3')).toContain(`--kl-reference: "${before}" → "${after}"`);
});

test('a checkpoint that cannot act, or does not fit, is refused with the reason', async () => {
  expect(await refusal('--kl-reference', 'demo@2')).toContain('no effect with --kl-coefficient 0');
  expect(await refusal(...KL, '--kl-reference', 'demo@0')).toContain('--kl-reference demo@0 has no effect: ');
  expect(await refusal(...KL, '--kl-reference', 'demo@9')).toContain('demo');
  expect(await refusal(...KL, '--kl-reference', 'demo@2', '--lora-rank', '8')).toContain('demo@2 has --lora-rank 16');
  const other = [
    'train',
    'agent.ts',
    '--run',
    'new',
    '--base-model',
    'pocket-tools',
    ...KL,
    '--kl-reference',
    'demo@2',
  ];
  expect(await complaintIn(project, other)).toContain('--kl-reference must be a checkpoint of pocket-tools');
  await store.publish(prunedKey({ run: 'demo', branch: 0, step: 2 }), encodeJson({ schema: 1, pruned: true }));
  expect(await refusal(...KL, '--kl-reference', 'demo@2')).toContain('they were pruned on purpose');
});

const [PACKED, ROUNDED] = [{ quantization: 'nf4' }, { dtype: 'bfloat16' }];

test('a checkpoint of the base model in another type, or in 4 bits, is no reference of a run that loads it otherwise', async () => {
  await makeRun(store, { run: 'packed', steps: 1, platform: PACKED });
  await makeRun(store, { run: 'rounded', steps: 1, platform: ROUNDED });
  const to = (run: string, ...flags: string[]) =>
    refusal(...KL, '--device', 'cpu', '--kl-reference', `${run}@1`, ...flags);
  expect(await to('rounded')).toContain('rounded@1 has it in bfloat16, the run in float32');
  expect(await to('packed')).toContain('packed@1 has it in float32 with 4 bits per weight, the run in float32; name');
  expect(await to('demo', '--dtype', 'bfloat16')).toContain('demo@1 has it in float32, the run in bfloat16; name');
  const accepted = [
    await plan('--kl-reference', 'rounded@1', '--dtype', 'bfloat16'),
    await plan('--kl-reference', 'packed@1', '--device', 'cpu', '--load-in-4bit'),
  ];
  // An engine elsewhere loads it as it likes.
  const words = [...NEW, ...KL, '--kl-reference', 'rounded@1'];
  const context = contextOf(trainCommand, project, words, { TEMPER_ENGINE_URL: 'http://gpu:1' });
  accepted.push((await planTrain(context, 'estimate')).config);
  for (const config of accepted) expect(config).toHaveProperty('train.klReference');
});

test('a fork and a run that exists are compared by what they have, also by the weights', async () => {
  await makeRun(store, { run: 'rounded', steps: 1, platform: ROUNDED });
  await makeRun(store, { run: 'elsewhere', steps: 1 });
  const place = { run: 'elsewhere', branch: 0, step: 1 };
  const changed = { ...(await readManifest(store, place)), baseModelSha256: 'f'.repeat(64) };
  await store.replace(manifestKey(place), encodeJson(changed));
  const { baseModelSha256: own } = (await readManifest(store, { ...place, run: 'demo' }))!;
  const fork = (reference: string, ...flags: string[]) => {
    const words = ['agent.ts', '--from', 'demo@1', '--run', 'forked', ...KL, '--kl-reference', reference];
    return complaintIn(project, ['train', ...words, ...flags]);
  };
  // The parent's own type counts: the flag is refused where the fork begins.
  expect(await fork('rounded@1', '--dtype', 'bfloat16')).toMatch(
    /in bfloat16, the run in float32; name another checkpoint$/,
  );
  expect((await fork('elsewhere@1')).replaceAll(own, 'OWN').replaceAll('f'.repeat(64), 'ITS')).toContain(
    "--kl-reference must be trained on the weights of the run's base model: elsewhere@1 has pocket with sha256 ITS, the run OWN",
  );
  const config = await plan('--kl-reference', 'elsewhere@1', '--device', 'cpu');
  await makeRun(store, { run: 'new', steps: 1 });
  const file = { schema: 1, config, agentCodeSha256: 'e'.repeat(64), versions: {}, parent: null };
  await store.replace(runKey('new'), encodeJson(file));
  expect(await refusal(...KL, '--kl-reference', 'elsewhere@1')).toContain(
    `with sha256 ${'f'.repeat(64)}, the run ${own};`,
  );
});
