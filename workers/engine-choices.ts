/** What the embedded engine may compute on, and with which numbers: as the GPU worker has them (process/arguments.py). */
export const DEVICE = { pattern: /^(auto|cpu|cuda(:\d+)?)$/, rule: 'auto, cpu, cuda or cuda:N' } as const;
export const DTYPES = ['auto', 'float32', 'bfloat16'] as const;
export type Dtype = (typeof DTYPES)[number];
