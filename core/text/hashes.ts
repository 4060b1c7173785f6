/** Hashes of values, the same in every process and language: canonical JSON, then SHA-256. Runs inside the workflow sandbox. */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';

/** JSON with keys sorted by UTF-16 units (RFC 8785) and no spaces; what JSON leaves out (`undefined`, functions) is left out here too. */
export function canonicalJson(value: unknown): string {
  return encode(value) ?? 'null';
}

export function sha256Hex(content: string | Uint8Array): string {
  return bytesToHex(sha256(typeof content === 'string' ? new TextEncoder().encode(content) : content));
}

export function hashOf(value: unknown): string {
  return sha256Hex(canonicalJson(value));
}

function encode(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => encode(item) ?? 'null').join(',')}]`;
  if (hasToJson(value)) return encode(value.toJSON());
  return encodeObject(value);
}

function encodeObject(value: object): string {
  const members: string[] = [];
  for (const key of Object.keys(value).toSorted()) {
    const encoded = encode((value as Record<string, unknown>)[key]);
    if (encoded !== undefined) members.push(`${JSON.stringify(key)}:${encoded}`);
  }
  return `{${members.join(',')}}`;
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}
