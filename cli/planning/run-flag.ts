/** A flag that sets a field of a run's configuration. */
import type { Flag, NONE } from '../command-line/command.ts';

export type RunFlag = Flag & {
  /** Where the value stands in RunConfig, e.g. `train.lora.rank`. */
  readonly path: string;
  /** What a switch sets; absent: true. */
  readonly value?: null;
  /** The value that switches the option off, and how that is recorded; absent: not at all. */
  readonly off?: { readonly given: typeof NONE | 0; readonly recorded?: null };
  /** Said in parentheses when the rule of the field is broken. */
  readonly because?: string;
};
