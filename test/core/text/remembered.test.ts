import { expect, test } from 'vitest';

import { Remembered } from '../../../core/text/remembered.ts';

test('a value is made once while it is among the newest ones', () => {
  const remembered = new Remembered<string>();
  const made: string[] = [];
  const get = (key: string) =>
    remembered.get(key, () => {
      made.push(key);
      return key.toUpperCase();
    });
  expect(['a', 'b', 'a', 'c', 'd', 'e', 'a', 'b'].map(get).join('')).toBe('ABACDEAB');
  expect(made.join('')).toBe('abcdeb');
});
