/** What an engine may be, what it may compute on, and with which numbers. */
import { DEVICE_PATTERN, type DTYPES, type ENGINES } from '../core/wire-constants.ts';

export const DEVICE = { pattern: DEVICE_PATTERN, rule: 'auto, cpu, cuda or cuda:N' } as const;
export type Dtype = (typeof DTYPES)[number];
export type EngineKind = (typeof ENGINES)[number];
