import { expect, test } from 'vitest';

import { createContact } from '../../activities/contact.ts';

test('a silence counts from when work began, and after it has ended; questions in between are none', () => {
  let now = 1_000_000;
  const contact = createContact(() => now);
  const began = now;
  for (let asked = 0; asked < 100; asked++) {
    now += 2000;
    contact.answered(now);
  }
  expect(contact.silenceMs(began)).toBe(0);
  now += 60_000;
  const later = now - 4000;
  expect([contact.silenceMs(began), contact.silenceMs(later)]).toEqual([60_000, 4000]);
  contact.answered(now);
  now += 1000;
  expect([contact.silenceMs(began), contact.silenceMs(later), contact.silenceMs(now)]).toEqual([60_000, 4000, 0]);
});

test('a clock that was ahead and is put right has seen no silence that still counts', () => {
  let now = 10_000_000;
  const contact = createContact(() => now);
  now += 3_600_000;
  contact.answered(now);
  expect(contact.silenceMs(10_000_000)).toBe(3_600_000);
  now -= 3_600_000;
  contact.answered(now);
  expect(contact.silenceMs(now - 1000)).toBe(0);
});
