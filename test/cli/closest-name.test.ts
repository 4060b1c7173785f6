import { expect, test } from 'vitest';
import { closestName } from '../../core/names/closest-name.ts';

test('a typo is near one name, nonsense near none', () => {
  expect(closestName('grop-size', ['group-size', 'groups-per-step'])).toBe('group-size');
  expect(closestName('xyzzy', ['group-size', 'steps'])).toBeNull();
});
