/** The flags of `temper eval`, each checked. */
import { checkBaseUrl } from '../../play/connections/providers.ts';
import { stringFlag } from '../command-line/command.ts';
import type { Flags } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';

export function countFlag(flags: Flags, name: string): number | null {
  const text = stringFlag(flags, name);
  if (text === null) return null;
  const smallest = name === 'seed' ? 0 : 1;
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text)) && Number(text) >= smallest) return Number(text);
  throw new UsageError(
    `--${name} must be a whole number of at least ${smallest}, got ${JSON.stringify(text)}; pass --${name} N`,
  );
}

export function temperatureFlag(flags: Flags): number | null {
  const text = stringFlag(flags, 'temperature');
  if (text === null) return null;
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0 && value <= 2) return value;
  throw new UsageError(`--temperature must be a number from 0 to 2, got ${JSON.stringify(text)}; pass --temperature 1`);
}

export function baseUrlFlag(flags: Flags): string | null {
  const url = stringFlag(flags, 'base-url');
  return url === null ? null : checkBaseUrl('--base-url', url);
}
