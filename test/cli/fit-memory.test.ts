import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fitToMemory } from '../../cli/planning/fit-memory.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import { fakePython } from './fake-python.ts';
import { writeAgent } from './agents.ts';
import { contextOf } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const GIB = 1024 ** 3;

interface Fitting {
  /** Bytes of the base model's file. */
  readonly weights?: number;
  /** Tokens of the longest example, of a run of examples. */
  readonly longest?: number;
}

/** A model of 300 MB, of which nobody reads a byte, and a Python that says what fits. */
async function fitted(
  flags: readonly string[],
  device: { needed: number; fits: boolean },
  { weights = 300 << 20, longest }: Fitting = {},
) {
  const project = temporaryFolder();
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
  const given = 'const work = input; const { engine } = work;';
  const tokens =
    'work.context ?? (work.compared === 1 ? 1024 : engine.loadIn4bit ? 2048 : engine.devices === 2 && engine.shardBaseModel ? 8192 : work.fit ? 4096 : work.microBatchTokens)';
  const answer = `console.log(JSON.stringify({ ...${JSON.stringify(report)}, memory: { ...${JSON.stringify(memory)}, microBatchTokens: ${tokens} } }))`;
  const env = fakePython(`${given} ${answer}`);
  const others = ['--base-model', './mine', ...flags];
  if (longest !== undefined) {
    const chat = (content: string) =>
      JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
    writeFileSync(join(project, 'chats.jsonl'), [chat('a'), chat('b')].join('\n'));
    const sft = contextOf(trainCommand, project, ['chats.jsonl', ...others], env);
    const planned = await fitToMemory(await planTrain(sft, 'estimate'), sft.flags, sft, longest);
    return planned.config.train.microBatchTokens;
  }
  const context = contextOf(trainCommand, project, ['agent.ts', ...others], env);
  const plan = await planTrain(context, 'estimate');
  return (await fitToMemory(plan, context.flags, context)).config.train.microBatchTokens;
}

test('a new run records the micro-batch that fits into free memory, unless a person says one', async () => {
  expect(await fitted([], { needed: 7 * GIB, fits: true })).toBe(4096);
  expect(await fitted(['--micro-batch-tokens', '9000'], { needed: 7 * GIB, fits: true })).toBe(9000);
  expect(await fitted([], { needed: 7 * GIB, fits: true }, { weights: 1 << 20 })).toBe(16_384);
  // Each device has a part of the base model then.
  expect(await fitted(['--devices', '2', '--shard-base-model'], { needed: 7 * GIB, fits: true })).toBe(8192);
  expect(await fitted(['--load-in-4bit'], { needed: 7 * GIB, fits: true })).toBe(2048);
});

test('the longest example is planned for, and is the remedy where it alone is too long', async () => {
  const device = { needed: 7 * GIB, fits: true };
  expect(await fitted([], device, { longest: 3000 })).toBe(3000);
  // It has a micro-batch of its own.
  expect(await fitted([], device, { longest: 20_000 })).toBe(16_384);
  const full = { needed: 12 * GIB, fits: false };
  await expect(fitted([], full, { longest: 20_000 })).rejects.toThrow(
    'with micro-batches of 20000 tokens (micro-batch 12.0 GiB); lower --max-example-tokens or engine.kvCacheBytes',
  );
});

test('what a step is compared with is planned, too', async () => {
  expect(await fitted(['--max-staleness', '1'], { needed: 7 * GIB, fits: true })).toBe(1024);
});

test('a model that cannot be trained on this machine is refused with figures before anything is loaded', async () => {
  await expect(fitted(['--micro-batch-tokens', '9000'], { needed: 12 * GIB, fits: false })).rejects.toThrow(
    'mine must fit into the 8.0 GiB of cpu to be trained, but needs 12.0 GiB with micro-batches of 9000 tokens (micro-batch 12.0 GiB); lower --micro-batch-tokens or engine.kvCacheBytes, pass --dtype bfloat16 or --load-in-4bit, shard',
  );
  for (const flags of [['--load-in-4bit'], ['--full-fine-tuning']])
    await expect(fitted(flags, { needed: 12 * GIB, fits: false })).rejects.toThrow(/pass --dtype bfloat16, /);
});
