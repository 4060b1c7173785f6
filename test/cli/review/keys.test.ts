import { expect, test } from 'vitest';
import { ReviewKeys, type KeyScope } from '../../../operations/review/keys.ts';

const SCOPE: KeyScope = { kind: 'link', run: 'demo', attempt: '0.1.0.0', expiresAt: 5 };

test('a key opens what it was signed for, by the review key and for the store that signed it', () => {
  const keys = new ReviewKeys('the review key', 'one store');
  const token = keys.sign(SCOPE);
  expect(keys.read(token, 'link')).toEqual(SCOPE);
  expect(keys.read(token, 'run')).toBeNull();
  expect(new ReviewKeys('the review key', 'another store').read(token, 'link')).toBeNull();
  expect(new ReviewKeys('another review key', 'one store').read(token, 'link')).toBeNull();
  const [text, seal] = token.split('.');
  const forged = Buffer.from(JSON.stringify(['link', 'demo', '0.1.0.1', 5])).toString('base64url');
  expect([`${forged}.${seal}`, `${text}.${'A'.repeat(43)}`, text!, ''].map((each) => keys.read(each, 'link'))).toEqual([
    null,
    null,
    null,
    null,
  ]);
});
