/** Numeric tests as other processors compute them: another one has other kernels, which add in another order. */
import { execFileSync } from 'node:child_process';

export interface Limits {
  /** `narrow`: what a GPU worker falls back to (AVX2); `oldest`: no AVX. */
  readonly instructions?: 'narrow' | 'oldest';
  /** Seed of perturbed rounding (gpu-worker/tests/rounding.py): each kernel computes two parts of a product, which are added. */
  readonly rounding?: number;
}

const OLDEST = { ATEN_CPU_CAPABILITY: 'default', ONEDNN_MAX_CPU_ISA: 'SSE41' };
const PROGRAM = 'import json; from temper_gpu.model.instructions import NARROW; print(json.dumps(NARROW))';

/** Variables of the environment. Only x86-64 has instructions that can be left out. */
export function limitedBy({ instructions, rounding }: Limits, python: string): Record<string, string> {
  const set = process.arch === 'x64' ? instructions : undefined;
  return {
    ...(set === 'narrow' && JSON.parse(execFileSync(python, ['-c', PROGRAM], { cwd: 'gpu-worker', encoding: 'utf8' }))),
    ...(set === 'oldest' && OLDEST),
    ...(rounding !== undefined && { TEMPER_ROUNDING: `${rounding}` }),
  };
}
