import { expect, test } from 'vitest';

import { startPulse } from '../../activities/pulse.ts';

test('a clock that was ahead and is put right has seen no standstill that still counts', () => {
  let now = 10_000_000;
  const pulse = startPulse(() => now);
  const longest = (jumpMs: number) => {
    now += jumpMs;
    pulse.beat();
    return pulse.longestGapMs(now - 1000);
  };
  expect(longest(500)).toBe(0);
  expect(longest(3_600_000)).toBe(3_600_000);
  expect(longest(-3_600_000)).toBe(0);
  expect(longest(500)).toBe(0);
  expect(longest(30_000)).toBe(30_000);
  expect(longest(500)).toBe(30_000);
  expect([longest(500), longest(500)]).toEqual([0, 0]);
});
