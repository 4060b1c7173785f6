/** What the embedded engine may compute on, and with which numbers. */
import { DEVICE_PATTERN, type DTYPES } from '../core/wire-constants.ts';

export const DEVICE = { pattern: DEVICE_PATTERN, rule: 'auto, cpu, cuda or cuda:N' } as const;
export type Dtype = (typeof DTYPES)[number];
