import { expect, it } from 'vitest';
import { describeBase, isSameBase, loadedBase, trainedBase } from '../../../workers/config/loaded-base.ts';

const auto = { device: 'auto', dtype: 'auto', loadIn4bit: false } as const;

it.each([
  ['as it is told', { ...auto, dtype: 'bfloat16' }, false, 'bfloat16'],
  ['in float32 on a host without GPUs', auto, false, 'float32'],
  ['as PyTorch decides on a host with GPUs', auto, true, null],
  ['in float32 on the CPU', { ...auto, device: 'cpu' }, true, 'float32'],
  ['in bfloat16 on a GPU', { ...auto, device: 'cuda:1' }, true, 'bfloat16'],
] as const)('a GPU worker loads a base model %s', (_, engine, hasGpus, dtype) => {
  expect(loadedBase(engine, hasGpus)).toEqual({ dtype, loadIn4bit: false });
});

it('a manifest says how the base model was loaded', () => {
  const packed = { platform: { quantization: 'nf4', dtype: 'bfloat16' } };
  expect(trainedBase(packed)).toEqual({ dtype: 'bfloat16', loadIn4bit: true });
  expect(trainedBase({ platform: { cpu: 'abacus' } })).toEqual({ dtype: 'float32', loadIn4bit: false });
});

it('what is not known yet does not differ', () => {
  const packed = trainedBase({ platform: { quantization: 'nf4', dtype: 'bfloat16' } });
  expect(isSameBase(packed, { dtype: null, loadIn4bit: true })).toBe(true);
  expect(isSameBase(packed, { dtype: null, loadIn4bit: false })).toBe(false);
  expect(isSameBase(packed, { dtype: 'float32', loadIn4bit: true })).toBe(false);
  expect(describeBase(packed)).toBe('bfloat16 with 4 bits per weight');
});
