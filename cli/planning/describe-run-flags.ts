/** Descriptions of a run's flags for help, from the contract and the defaults, which a command's definition does not import. */
import { DEFAULT_LOSS, LOSS_NAMES } from '../../core/contract.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';
import type { Flags } from '../command-line/command.ts';
import type { RunFlag } from './run-flag.ts';
import { RUN_FLAG_ROWS } from './run-flag-table.ts';

const OTHER_LOSSES = LOSS_NAMES.filter((name) => name !== DEFAULT_LOSS);
const LOSS = `${DEFAULT_LOSS}; with --passes or --mini-batches above 1, or --max-staleness above 0, also ${OTHER_LOSSES.join(', ')}`;

const DEFAULTS = defaultRunConfig({ run: 'run', agent: 'agent', baseModel: 'model' });
/** Its default depends on another flag, or is none. */
const NO_DEFAULT = new Set(['baseModel', 'finalLearningRateShare', 'train.loss.epsilonLow', 'train.loss.epsilonHigh']);

/** Descriptions with defaults. A command's own description of a flag stays. */
export function describeRunFlags(flags: Flags): Readonly<Record<string, string>> {
  const rows = RUN_FLAG_ROWS.filter(([flag, { description }]) => flags[flag]?.description === description);
  return Object.fromEntries(rows.map(([flag, row]) => [flag, `${describe(flag, row)}${shownDefault(row)}`]));
}

/** Descriptions for a fork, without defaults: missing flags keep the parent's values. */
export function describeForkFlags(): Readonly<Record<string, string>> {
  return { loss: LOSS };
}

function describe(flag: string, { description }: RunFlag): string {
  return flag === 'loss' ? LOSS : description;
}

function shownDefault({ kind, path }: RunFlag): string {
  const value = path.split('.').reduce<unknown>(memberOf, DEFAULTS);
  return kind === 'boolean' || value === null || value === undefined || NO_DEFAULT.has(path)
    ? ''
    : ` [${JSON.stringify(value)}]`;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
}
