/** Flags from `train` of temporal.config.ts, for every run of a project, as words of the command line. */
import { badConfig } from '../../core/contract/failures.ts';
import { closestName } from '../../core/names/closest-name.ts';
import { loadConfig, type TemperConfig } from '../../workers/config/config.ts';
import { CONFIG_FILE } from '../../workers/project/folders.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { RunFlag } from './run-flag.ts';
import { RUN_FLAGS } from './run-flag-table.ts';

export async function readProjectFlags(
  { project, env }: Pick<CommandEnvironment, 'project' | 'env'>,
  isTaken: (name: string) => boolean,
): Promise<string[]> {
  const { train } = await loadConfig(project, env);
  return flagText({ train }).filter((word) => isTaken(word.slice(2).split('=', 1)[0]!));
}

export function flagText({ train }: Pick<TemperConfig, 'train'>): string[] {
  return Object.entries(train).flatMap(([name, value]) => asWords(name, value));
}

function asWords(name: string, value: TemperConfig['train'][string]): string[] {
  const flags: Readonly<Record<string, RunFlag>> = RUN_FLAGS;
  const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
  const field = `train[${JSON.stringify(name)}] of ${CONFIG_FILE}`;
  if (flag === undefined) {
    const guess = closestName(name, Object.keys(flags));
    throw badConfig(
      `${field} is no flag of a run; ${guess === null ? 'see temper train --help' : `did you mean ${guess}?`}`,
    );
  }
  if (flag.kind !== 'boolean') {
    if (typeof value !== 'boolean') return [`--${name}=${Array.isArray(value) ? value.join(',') : String(value)}`];
    throw badConfig(`${field} must be ${flag.placeholder}, got ${value}; see temper train --help`);
  }
  if (typeof value === 'boolean') return value ? [`--${name}`] : [];
  throw badConfig(`${field} must be true or false, got ${JSON.stringify(value)}; see temper train --help`);
}
