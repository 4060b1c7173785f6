/** Flags by node:util's parseArgs; every mistake is a UsageError that names the flag and the remedy. */
import { parseArgs } from 'node:util';
import type { Command, CommandOptions, Flags } from './command.ts';
import { UsageError } from './errors.ts';

export interface Parsed {
  readonly flags: Flags;
  readonly positionals: readonly string[];
  readonly help: boolean;
}

export function parseCommandLine(command: Command, args: readonly string[]): Parsed {
  const options = {
    ...command.options,
    help: { type: 'boolean', short: 'h', description: '' },
  } satisfies CommandOptions;
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const flagTokens = tokens.filter((token) => token.kind === 'option');
  for (const token of flagTokens) checkFlag(command, options, token);
  const { values, positionals } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true });
  const help = values['help'] === true;
  if (!help) checkPositionals(command, positionals);
  return { flags: values, positionals, help };
}

interface FlagToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function checkFlag(command: Command, options: CommandOptions, token: FlagToken): void {
  const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
  if (option === undefined) {
    const guess = closestName(token.name, Object.keys(options));
    const remedy = guess === null ? `see temper ${command.name} --help` : `did you mean --${guess}?`;
    throw new UsageError(`unknown flag ${token.rawName}; ${remedy}`);
  }
  if (option.type === 'boolean' && token.value !== undefined) {
    throw new UsageError(
      `${token.rawName} takes no value, got ${JSON.stringify(token.value)}; write ${token.rawName} alone`,
    );
  }
  // parseArgs would take the next flag for the value: `--run --steps 3` is a forgotten value, `--seed -1` says what it means.
  const isForgotten = token.value === undefined || (token.inlineValue !== true && token.value.startsWith('--'));
  if (option.type === 'string' && isForgotten) {
    throw new UsageError(`${token.rawName} needs a value; write ${token.rawName} ${option.placeholder ?? 'VALUE'}`);
  }
}

function checkPositionals(command: Command, positionals: readonly string[]): void {
  const missing = command.positionals[positionals.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing; usage: temper ${command.usage}`);
  const extra = positionals[command.positionals.length + (command.optionalPositionals?.length ?? 0)];
  if (extra !== undefined && command.repeats !== true)
    throw new UsageError(`unexpected argument ${JSON.stringify(extra)}; usage: temper ${command.usage}`);
}

/** The name that a typo most likely meant, or null where none is near. */
export function closestName(name: string, names: readonly string[]): string | null {
  const ranked = names
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .toSorted((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : null;
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
