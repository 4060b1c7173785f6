import { expect, it } from 'vitest';
import { checkEngineKind, defineConfig } from '../../../workers/config/config.ts';
import { chosenEngine } from '../../../workers/config/engine-choices.ts';
import { isQuantized, trainedDtype } from '../../../workers/config/quantization.ts';

it.each([
  [
    'vLLM',
    { kind: 'vllm' },
    'the embedded engine, because vLLM reads the weights of the model itself, got vllm; choose the embedded engine (--engine, engine.kind)',
  ],
  [
    'parts of the base model',
    { devices: 2, shardBaseModel: true },
    'a whole base model on each device, because weights in 4 bits cannot be sharded, got --shard-base-model; leave that out (engine.shardBaseModel)',
  ],
] as const)('a GPU worker loads no base model in 4 bits for %s', (_, other, rule) => {
  const check = (engine: object) => checkEngineKind(chosenEngine(defineConfig({ engine }).engine, {}));
  expect(() => check({ ...other, loadIn4bit: true })).toThrow(
    `--load-in-4bit (engine.loadIn4bit in temporal.config.ts) must come with ${rule}, or leave --load-in-4bit out`,
  );
  expect(() => check(other)).not.toThrow();
  expect(() => check({ loadIn4bit: true })).not.toThrow();
});

it('a manifest says how the base model was loaded', () => {
  const packed = { platform: { quantization: 'nf4', dtype: 'bfloat16' } };
  expect([isQuantized(packed), trainedDtype(packed)]).toEqual([true, 'bfloat16']);
  const plain = { platform: { cpu: 'abacus' } };
  expect([isQuantized(plain), trainedDtype(plain)]).toEqual([false, 'float32']);
});
