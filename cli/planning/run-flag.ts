/** A flag that sets a field of a run's configuration. */
import type { Flag } from '../../operations/flags.ts';

export type RunFlag = Flag & {
  /** Path of the value in RunConfig, e.g. `train.lora.rank`. */
  readonly path: string;
  /** Value that a switch sets; default: true. */
  readonly value?: null;
  /** Reason for the field's rule, shown in errors. */
  readonly because?: string;
};
