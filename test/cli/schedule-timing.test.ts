import { expect, test } from 'vitest';

import { parseCron, parseInterval } from '../../cli/schedule/schedule-timing.ts';

test.each([
  ['30m', 1_800_000],
  ['6h', 21_600_000],
  ['1d', 86_400_000],
  ['2w', 1_209_600_000],
])('the interval %s', (text, ms) => {
  expect(parseInterval(text)).toBe(ms);
});

test.each(['', '1', 'd', '0d', '-1d', '1.5h', '10s', '1 d', '1day', '1D', '1234567m'])(
  'the interval %j is refused with what to write',
  (text) => {
    expect(() => parseInterval(text)).toThrow(`got ${JSON.stringify(text)}; write it like 6h or 1d`);
  },
);

test.each(['0 3 * * *', '*/15 * * * *', '0 0 1,15 * mon-fri', '30 8-18/2 * JAN,jul 0', '0 12 * * 7'])(
  'the cron line %j',
  (text) => {
    expect(parseCron(text)).toBe(text);
  },
);

test('spaces between the fields of a cron line are one', () => {
  expect(parseCron('  0  3\t* * * ')).toBe('0 3 * * *');
});

test.each([
  ['', 'must have five fields'],
  ['0 3 * *', 'must have five fields'],
  ['0 0 3 * * *', 'must have five fields'],
  ['@daily', 'must have five fields'],
  ['60 3 * * *', 'minute must be *, or values from 0 to 59 with , - and /, got "60"'],
  ['0 24 * * *', 'hour must be'],
  ['0 3 0 * *', 'day of the month must be'],
  ['0 3 * 13 *', 'month must be'],
  ['0 3 * foo *', 'month must be'],
  ['0 3 * * 8', 'day of the week must be'],
  ['0 5-3 * * *', 'hour must be'],
  ['*/0 3 * * *', 'minute must be'],
  ['1-2-3 3 * * *', 'minute must be'],
  ['1/2/3 3 * * *', 'minute must be'],
  ['1, 3 * * *', 'minute must be'],
])('the cron line %j is refused', (text, message) => {
  expect(() => parseCron(text)).toThrow(message);
});
