/** `KEY=VALUE` as `temper set` takes it: named and held to the rules as the flags of `temper train` are. */
import { ONE_PASS } from '../../core/loss-options.ts';
import { SETTINGS, type Settings } from '../../core/settings.ts';
import { UsageError } from '../command-line/errors.ts';
import { closestName } from '../command-line/parse.ts';
import { RUN_FLAGS } from '../train/run-flag-table.ts';
import type { RunFlag } from '../train/run-flag-table.ts';
import { checkField, parseValue } from '../train/run-flags.ts';

/** `prefix` stands before a setting where a person types it: nothing, or `--set `. */
interface Place {
  readonly prefix: string;
  readonly help: string;
}

export function parseSettings(texts: readonly string[], place: Place): Settings {
  const settings: Record<string, number> = {};
  for (const text of texts) {
    const [key = '', ...rest] = text.split('=');
    if (rest.length === 0)
      throw new UsageError(`a setting must be KEY=VALUE, got ${JSON.stringify(text)}; pass ${place.prefix}steps=300`);
    const row = findRow(key.trim(), place);
    const name = leaf(row);
    if (settings[name] !== undefined) throw new UsageError(`${name} is given twice; pass it once`);
    const naming = { name, prefix: `${place.prefix}${name}=`, help: place.help };
    const value = parseValue(row, rest.join('='), naming);
    checkField(row, value, naming);
    settings[name] = value as number;
  }
  return settings;
}

function findRow(key: string, { help }: Place): RunFlag {
  const row = RUN_FLAGS.find((candidate) => leaf(candidate) === key || candidate.flag === key);
  if (row !== undefined && SETTINGS.some((setting) => setting === leaf(row))) return row;
  const names = SETTINGS.join(', ');
  if (row?.path.startsWith('train.loss.')) throw new UsageError(`${key} has no effect: ${ONE_PASS}; leave ${key} out`);
  if (row !== undefined)
    throw new UsageError(
      `${key} cannot be changed after a run has started, only ${names} can; start another run with --${row.flag}`,
    );
  const guess = closestName(key, SETTINGS);
  throw new UsageError(
    `unknown setting ${JSON.stringify(key)}, ${guess === null ? `not one of ${names}; see ${help}` : `did you mean ${guess}?`}`,
  );
}

/** `rollout.temperature` is set as `temperature`. */
function leaf({ path }: RunFlag): string {
  return path.split('.').at(-1)!;
}
