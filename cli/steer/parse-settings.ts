/** `KEY=VALUE` of `temper set`, with the names and rules of the flags of `temper train`. */
import { SETTINGS, type Setting, type Settings } from '../../core/settings.ts';
import type { NumberFlag } from '../command-line/command.ts';
import { UsageError, closestName } from '../command-line/errors.ts';
import { isNumberFlag, readNumber } from '../command-line/values.ts';
import type { RunFlag } from '../planning/run-flag.ts';
import { RUN_FLAG_ROWS } from '../planning/run-flag-table.ts';
import { checkField } from '../planning/run-flags.ts';

/** `prefix`: text before a setting on the command line, empty or `--set `. */
interface Place {
  readonly prefix: string;
  readonly help: string;
}

export function parseSettings(texts: readonly string[], place: Place): Settings {
  const settings: Settings = {};
  for (const text of texts) {
    const [key = '', ...rest] = text.split('=');
    if (rest.length === 0)
      throw new UsageError(`a setting must be KEY=VALUE, got ${JSON.stringify(text)}; pass ${place.prefix}steps=300`);
    const { name, row } = findSetting(key.trim(), place);
    if (settings[name] !== undefined) throw new UsageError(`${name} is given twice; pass it once`);
    const value = readNumber(row, rest.join('='), { name, prefix: `${place.prefix}${name}=` });
    checkField(row, value, { name, help: place.help });
    settings[name] = value;
  }
  return settings;
}

interface FoundSetting {
  readonly name: Setting;
  readonly row: RunFlag & NumberFlag;
}

function findSetting(key: string, { help }: Place): FoundSetting {
  const [flag, row] = RUN_FLAG_ROWS.find(([name, candidate]) => leaf(candidate) === key || name === key) ?? [];
  const name = row && SETTINGS.find((setting) => setting === leaf(row));
  if (name !== undefined && row !== undefined && isNumberFlag(row)) return { name, row };
  const names = SETTINGS.join(', ');
  if (row !== undefined)
    throw new UsageError(
      `${key} cannot be changed after a run has started, only ${names} can; start another run with --${flag}`,
    );
  const guess = closestName(key, SETTINGS);
  throw new UsageError(
    `unknown setting ${JSON.stringify(key)}, ${guess === null ? `not one of ${names}; see ${help}` : `did you mean ${guess}?`}`,
  );
}

/** Short name: `rollout.temperature` is set as `temperature`. */
function leaf({ path }: RunFlag): string {
  return path.split('.').at(-1)!;
}
