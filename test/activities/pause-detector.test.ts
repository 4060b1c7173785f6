import { expect, test } from 'vitest';

import { startPauseDetector } from '../../activities/pause-detector.ts';

test('a clock that was ahead and is put right has seen no standstill that still counts', () => {
  let now = 10_000_000;
  const pauses = startPauseDetector(() => now);
  const longest = (jumpMs: number) => {
    now += jumpMs;
    pauses.check();
    return pauses.longestPauseMs(now - 1000);
  };
  expect(longest(500)).toBe(0);
  expect(longest(3_600_000)).toBe(3_600_000);
  expect(longest(-3_600_000)).toBe(0);
  expect(longest(500)).toBe(0);
  expect(longest(30_000)).toBe(30_000);
  expect(longest(500)).toBe(30_000);
  expect([longest(500), longest(500)]).toEqual([0, 0]);
});
