import { expect, test } from 'vitest';
import { closestName } from '../../cli/command-line/errors.ts';

test('a typo is near one name, nonsense near none', () => {
  expect(closestName('grop-size', ['group-size', 'groups-per-step'])).toBe('group-size');
  expect(closestName('xyzzy', ['group-size', 'steps'])).toBeNull();
});
