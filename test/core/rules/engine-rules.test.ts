import { expect, it } from 'vitest';
import { EngineSettings, type EngineKind } from '../../../core/contract/engine.ts';
import { checkStartedEngine, mergeEngineConfig, withPolicies } from '../../../core/rules/engine-rules.ts';

const check = (engine: object) => checkStartedEngine(EngineSettings.parse(engine));

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
  expect(() => check({ ...other, loadIn4bit: true })).toThrow(
    `--load-in-4bit (engine.loadIn4bit in temporal.config.ts) must come with ${rule}, or leave --load-in-4bit out`,
  );
  expect(() => check(other)).not.toThrow();
  expect(() => check({ loadIn4bit: true })).not.toThrow();
});

it('vLLM keeps the policies of a step loaded, and no fewer than are configured', () => {
  const policiesOf = (engine: object, needed?: number) =>
    withPolicies(EngineSettings.parse(engine), needed).vllm.policies;
  expect([policiesOf({ kind: 'vllm' }), policiesOf({ kind: 'vllm' }, 1), policiesOf({ kind: 'vllm' }, 6)]).toEqual([
    2, 2, 6,
  ]);
  expect(policiesOf({ kind: 'vllm', vllm: { policies: 8 } }, 6)).toBe(8);
  expect(policiesOf({ kind: 'embedded' }, 6)).toBe(2);
});

it('a single device has no part of the base model', () => {
  expect(() => check({ shardBaseModel: true })).toThrow(
    '--shard-base-model (engine.shardBaseModel in temporal.config.ts) must come with several --devices, got 1; pass --devices 2, or leave it out',
  );
});

it('what a command says goes before the configuration; what it leaves open does not', () => {
  const configured = {
    ...EngineSettings.parse({ device: 'cpu', devices: 2, loadIn4bit: true }),
    kind: null as EngineKind | null,
  };
  const open = { kind: null, device: null, dtype: null, devices: null, shardBaseModel: false, loadIn4bit: false };
  expect(mergeEngineConfig(configured, open)).toEqual({ ...configured, kind: 'embedded' });
  expect(mergeEngineConfig(configured, {}, 'vllm').kind).toBe('vllm');
  expect(mergeEngineConfig(configured, { kind: 'embedded', devices: 1 }, 'vllm')).toEqual({
    ...configured,
    kind: 'embedded',
    devices: 1,
  });
});
