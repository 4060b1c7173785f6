/** Request bodies of all formats: a JSON object in which null means absent, and texts that may come in parts. */
import { parseJson } from '../../core/text/json-text.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { canonicalJson } from '../../core/text/hashes.ts';
import type { RequestBody } from './dialect.ts';
import { badParameter } from '../recorder/canonical.ts';

export function parseBody(text: string): RequestBody {
  const body = parseJson(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw badConfig(`a request must be a JSON object, got ${text.slice(0, 100)}; send one`);
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** Names, as words of a text. */
export function namesOf(words: string): readonly string[] {
  return words.trim().split(/\s+/);
}

/** Refuses what a format has beyond chat completions, and what no one here has heard of, but for values without effect. */
export function checkNames(
  body: RequestBody,
  known: readonly string[],
  neutral: Record<string, readonly unknown[]>,
): void {
  for (const [name, value] of Object.entries(body)) {
    const accepted = Object.hasOwn(neutral, name) ? neutral[name]! : [];
    if (known.includes(name) || accepted.some((each) => canonicalJson(each) === canonicalJson(value))) continue;
    throw badParameter(name, value, 'is not supported', 'leave it out');
  }
}

/** Each message is hashed and written several times: a context with as many does not exist. */
const MOST_ITEMS = 10_000;

export function asList(name: string, value: unknown): object[] {
  if (Array.isArray(value) && value.length > MOST_ITEMS)
    throw badParameter(name, value.length, `must have at most ${MOST_ITEMS} items`, 'shorten it');
  if (Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null))
    return value as object[];
  throw badParameter(name, value, 'must be a list of objects', 'change it');
}

const TEXT_PARTS: readonly unknown[] = ['text', 'input_text', 'output_text'];

export function textOfParts(content: unknown): string {
  if (typeof content === 'string') return content;
  return asList('content', content ?? [])
    .map(textOfPart)
    .join('');
}

function textOfPart(part: { type?: unknown; text?: unknown }): string {
  if (TEXT_PARTS.includes(part.type) && typeof part.text === 'string') return part.text;
  throw badParameter('parts of a message', part, 'must be text', 'send text only');
}
