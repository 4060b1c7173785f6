/**
 * Metadata of the fields that a user sets. `npm run contract` generates the flags of a run, their help and the tables of
 * docs/commands.md from it.
 */
import type { z } from 'zod';

/** A table of docs/commands.md. */
export type OptionSection =
  | 'run'
  | 'groups'
  | 'evaluation'
  | 'warm-start'
  | 'optimizer'
  | 'rollouts'
  | 'loss'
  | 'judge'
  | 'costs'
  | 'deploy';

export interface OptionMeta {
  readonly section: OptionSection;
  /** Markdown; help shows it without links and backticks. */
  readonly description: string;
  /** Markdown that the docs add to the description. */
  readonly more?: string;
  /** Name of the flag; by default the field's name in kebab case. */
  readonly flag?: string;
  /** Another name of the flag. */
  readonly also?: string;
  /** Derived from the field's type by default. */
  readonly kind?: 'boolean';
  readonly placeholder?: string;
  /** Takes `none`, which sets null. */
  readonly none?: true;
  /** Value that a switch sets; by default true. */
  readonly value?: null;
  /** Place of the value in RunConfig, if it is not the field itself. */
  readonly path?: string;
  /** Markdown in place of a fixed default, if the default depends on something else. */
  readonly default?: string;
  /** Reason of the field's rule, shown when a value breaks it. */
  readonly because?: string;
  /** Among the flags that most runs need, which `--help` shows. */
  readonly isMain?: true;
  /** Also acts in runs of examples alone, as all options of the optimizer do. */
  readonly isSupervised?: true;
}

declare module 'zod' {
  interface GlobalMeta {
    option?: OptionMeta;
  }
}

type Described = <T extends z.ZodType>(
  field: T,
  description: string,
  others?: Omit<OptionMeta, 'section' | 'description'>,
) => T;

/** Adds metadata to the fields of a section. */
export function optionsOf(section: OptionSection): Described {
  return (field, description, others) => field.meta({ option: { section, description, ...others } });
}
