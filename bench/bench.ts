/** Definition of a bench, its options and its output. */
import { parseArgs } from 'node:util';
import { badConfig } from '../core/contract/failures.ts';

export type Flags = Readonly<Record<string, string>>;

export interface Bench {
  readonly name: string;
  readonly summary: string;
  /** Every flag with its default. */
  readonly flags: Flags;
  run(flags: Flags): Promise<object>;
}

/** Over rounds: a single number says nothing on a shared machine. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function parseFlags({ flags }: Bench, args: readonly string[]): Flags {
  const options = Object.fromEntries(Object.entries(flags).map(([name]) => [name, { type: 'string' as const }]));
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true });
    return { ...flags, ...(values as Flags) };
  } catch (error) {
    throw badConfig(error instanceof Error ? error.message : String(error));
  }
}

export function countFlag(flags: Flags, name: string): number {
  const value = Number(flags[name]);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw badConfig(`--${name} must be a whole number from 1, got ${flags[name]}`);
}

/** Reads a flag that takes one whole number from 1, or several. */
export function readCounts(name: string, text: string): number[] {
  return text.split(',').map((count) => countFlag({ [name]: count }, name));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The smallest of the values that at least this share of them does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

export function showSpread(values: readonly number[], digits = 2): string {
  const { median: middle, min, max } = spread(values);
  return `${middle.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

/** Reads a flag that lists some of `known`. */
export function readNames(flag: string, text: string, known: readonly string[]): string[] {
  const names = text.split(',');
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return names;
  throw badConfig(`--${flag} must name some of ${known.join(', ')}, got ${unknown}`);
}
