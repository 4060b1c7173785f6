/** What all formats have in common: a JSON object in which null means absent. */
import { TemperError } from '../../core/failures.ts';
import type { RequestBody } from './dialect.ts';

export function parseBody(text: string): RequestBody {
  const body = parseJson(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new TemperError('BadConfig', `a request must be a JSON object, got ${text.slice(0, 100)}; send one`);
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** Undefined where the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
