import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fitToMemory } from '../../cli/train/fit-memory.ts';
import { readPlannedRun } from '../../cli/train/read-planned-run.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { fakePrograms } from '../workers/install/fake-programs.ts';
import { writeAgent } from './agents.ts';
import { temporaryFolder } from './fixture-store.ts';
import { contextOf } from './run-cli.ts';

const GIB = 1024 ** 3;

/** A model of 300 MB, of which nobody reads a byte, and a Python that says what fits. */
async function fitted(flags: readonly string[], device: { needed: number; fits: boolean }, weights = 300 << 20) {
  const programs = fakePrograms();
  onTestFinished(() => programs.remove());
  const project = await temporaryFolder();
  await writeAgent(project);
  mkdirSync(join(project, 'mine'));
  for (const name of ['config.json', 'tokenizer.json', 'tokenizer_config.json'])
    writeFileSync(join(project, 'mine', name), '{"chat_template":"x"}');
  writeFileSync(join(project, 'mine', 'model.safetensors'), '');
  truncateSync(join(project, 'mine', 'model.safetensors'), weights);
  const parts = [{ phase: 'training', name: 'micro-batch', bytes: device.needed, reason: 'x' }];
  const memory = {
    context: 1,
    longestRequest: 1,
    requestsAtOnce: 1,
    devices: [{ device: 'cpu', bytes: 8 * GIB, ...device, parts }],
  };
  const facts = { model: 'mine', commit: null, architecture: 'X', parameters: 1, contextWindow: 1, dtype: 'float32' };
  const report = { ...facts, engine: 'embedded', refusal: null, templateGaps: [] };
  const tokens = `args.includes('--load-in-4bit') ? 2048 : args.join(' ').includes('--devices 2 --shard-base-model') ? 8192 : args.includes('--fit') ? 4096 : Number(args[args.indexOf('--micro-batch-tokens') + 1])`;
  const answer = `console.log(JSON.stringify({ ...${JSON.stringify(report)}, memory: { ...${JSON.stringify(memory)}, microBatchTokens: ${tokens} } }))`;
  programs.add('python', `if (args[0] === '-c') console.log('missing:'); else ${answer}`);
  const env = { ...programs.env, TEMPER_PYTHON: join(programs.folder, 'bin', 'python') };
  const context = contextOf(trainCommand, project, ['agent.ts', '--base-model', './mine', ...flags], env);
  const plan = await readPlannedRun(context);
  return (await fitToMemory(plan, context.flags, context)).config.train.microBatchTokens;
}

test('a new run records the micro-batch that fits into free memory, unless a person says one', async () => {
  expect(await fitted([], { needed: 7 * GIB, fits: true })).toBe(4096);
  expect(await fitted(['--micro-batch-tokens', '9000'], { needed: 7 * GIB, fits: true })).toBe(9000);
  expect(await fitted([], { needed: 7 * GIB, fits: true }, 1 << 20)).toBe(16_384);
  // Each device has a part of the base model then.
  expect(await fitted(['--devices', '2', '--shard-base-model'], { needed: 7 * GIB, fits: true })).toBe(8192);
  expect(await fitted(['--load-in-4bit'], { needed: 7 * GIB, fits: true })).toBe(2048);
});

test('a model that cannot be trained on this machine is refused with figures before anything is loaded', async () => {
  await expect(fitted(['--micro-batch-tokens', '9000'], { needed: 12 * GIB, fits: false })).rejects.toThrow(
    'mine must fit into the 8.0 GiB of cpu to be trained, but needs 12.0 GiB with micro-batches of 9000 tokens (micro-batch 12.0 GiB); lower --micro-batch-tokens or engine.kvCacheBytes, pass --dtype bfloat16 or --load-in-4bit, shard',
  );
  for (const flags of [['--load-in-4bit'], ['--full-fine-tuning']])
    await expect(fitted(flags, { needed: 12 * GIB, fits: false })).rejects.toThrow(/pass --dtype bfloat16, /);
});
