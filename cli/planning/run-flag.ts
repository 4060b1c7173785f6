/** A flag that sets a field of a run's configuration. */
import type { Flag } from '../command-line/command.ts';

export type RunFlag = Flag & {
  /** Where the value stands in RunConfig, e.g. `train.lora.rank`. */
  readonly path: string;
  /** What a switch sets; absent: true. */
  readonly value?: null;
  /** Said in parentheses when the rule of the field is broken. */
  readonly because?: string;
};
