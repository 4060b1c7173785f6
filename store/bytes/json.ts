import { requireKnownSchema, TemperError } from '../../core/contract/failures.ts';

/** Ends with a newline, as all JSON files of the store. */
export function encodeJson(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value)}\n`);
}

export function encodeJsonLines(values: readonly unknown[]): Uint8Array {
  return new TextEncoder().encode(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
}

/** Throws StoreCorrupt for bytes that are no JSON, LaterVersion for a record of a later schema. */
export function decodeJson(bytes: Uint8Array, name: string): unknown {
  const value = parseStoredJson(new TextDecoder().decode(bytes), name);
  requireKnownSchema(value, name);
  return value;
}

export function decodeJsonLines(bytes: Uint8Array, name: string): unknown[] {
  const lines = new TextDecoder().decode(bytes).split('\n');
  return lines.filter((line) => line.trim() !== '').map((line) => parseStoredJson(line, name));
}

/** Throws StoreCorrupt for a text that is no JSON. */
export function parseStoredJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new TemperError('StoreCorrupt', `${name} is not valid JSON; restore it from a copy`, { cause });
  }
}
