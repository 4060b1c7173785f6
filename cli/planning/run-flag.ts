/** A flag that sets a field of a run's configuration. */
import type { Flag, NONE } from '../command-line/command.ts';

export type RunFlag = Flag & {
  /** Path of the value in RunConfig, e.g. `train.lora.rank`. */
  readonly path: string;
  /** Value that a switch sets; default: true. */
  readonly value?: null;
  /** Value that switches the option off, and its recorded form; without one the field is removed. */
  readonly off?: { readonly given: typeof NONE | 0; readonly recorded?: null };
  /** Reason for the field's rule, shown in errors. */
  readonly because?: string;
};
