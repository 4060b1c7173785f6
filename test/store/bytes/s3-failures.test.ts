import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { asS3Failure } from '../../../store/bytes/s3-failures.ts';

const TABLE = new URL('../s3-failures.json', import.meta.url);
const { codes } = JSON.parse(readFileSync(TABLE, 'utf8')) as { codes: Record<string, [string, string]> };
const PLACE = { uri: 's3://bucket', endpoint: null };

/** The error as the SDK throws it. */
function failureOf(name: string, hasAnswered: boolean) {
  return asS3Failure(Object.assign(new Error('no'), { name, $metadata: { httpStatusCode: 403 } }), PLACE, hasAnswered)
    .type;
}

test.each(Object.entries(codes))('%s ends a run where no repetition mends it, as in Python', (code, types) => {
  expect([failureOf(code, false), failureOf(code, true)]).toEqual(types);
});

test('credentials that were there once may come back: a session is renewed under a living run', () => {
  expect(failureOf('CredentialsProviderError', false)).toBe('BadConfig');
  expect(failureOf('CredentialsProviderError', true)).toBe('StoreUnavailable');
});
