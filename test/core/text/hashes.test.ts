import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { canonicalJson, hashOf, sha256Hex } from '../../../core/text/hashes.ts';

test('canonical JSON sorts keys at every depth and leaves out what JSON leaves out', () => {
  const value = { b: [1, { d: null, c: undefined }], a: 'ä"', f: () => 1, e: 0.1 };
  expect(canonicalJson(value)).toBe('{"a":"ä\\"","b":[1,{"d":null}],"e":0.1}');
  expect(canonicalJson([undefined, Number.NaN])).toBe('[null,null]');
  expect(canonicalJson(new Date(0))).toBe('"1970-01-01T00:00:00.000Z"');
});

test('canonical JSON is that of Python', () => {
  const fixture = JSON.parse(readFileSync(new URL('canonical.json', import.meta.url), 'utf8')) as Record<
    string,
    unknown
  >;
  expect(canonicalJson(fixture['value'])).toBe(fixture['canonical']);
});

test('the hash of a value does not depend on the order of its keys', () => {
  expect(hashOf({ a: 1, b: 2 })).toBe(hashOf({ b: 2, a: 1 }));
  expect(hashOf({ a: 1 })).not.toBe(hashOf({ a: 2 }));
});

test('hashes are those of every other SHA-256', () => {
  expect(sha256Hex('Temper ✓')).toBe(createHash('sha256').update('Temper ✓').digest('hex'));
  expect(sha256Hex(new Uint8Array([1, 2]))).toBe(
    createHash('sha256')
      .update(Buffer.from([1, 2]))
      .digest('hex'),
  );
});
