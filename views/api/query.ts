/** Parameters of a view's query. A wrong one is refused with its rule. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';

const COUNT = /^(0|[1-9][0-9]{0,8})$/;

/** Undefined: not given. */
export function readCount(query: URLSearchParams, name: string, most = 999_999_999): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (COUNT.test(text) && Number(text) <= most) return Number(text);
  throw wrongParameter(name, most === 999_999_999 ? 'a whole number from 0' : `a whole number from 0 to ${most}`, text);
}

export function readQueryNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw wrongParameter(name, 'a number', text);
}

export function readFlag(query: URLSearchParams, name: string): boolean | undefined {
  const text = readChoice(query, name, ['true', 'false']);
  return text === undefined ? undefined : text === 'true';
}

export function readChoice<T extends string>(
  query: URLSearchParams,
  name: string,
  choices: readonly T[],
): T | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw wrongParameter(name, `one of ${choices.join(', ')}`, text);
}

/** An empty text is none. */
export function readQueryText(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) || undefined;
}

export function wrongParameter(name: string, rule: string, value: string): TemperError {
  return badConfig(`${name} must be ${rule}, got ${JSON.stringify(value)}; change or remove it`);
}
