import { expect, test } from 'vitest';
import { SharedAnswers } from '../../views/context/context.ts';

test('an answer that is being made is shared, and made anew for the next request', async () => {
  const shared = new SharedAnswers();
  let made = 0;
  const make = async () => ({ made: (made += 1) });
  expect(await Promise.all([shared.ask('a', make), shared.ask('a', make), shared.ask('b', make)])).toEqual([
    { made: 1 },
    { made: 1 },
    { made: 2 },
  ]);
  expect(await shared.ask('a', make)).toEqual({ made: 3 });
});

test('a failure is shared and not kept', async () => {
  const shared = new SharedAnswers();
  const fail = () => Promise.reject(new Error('no'));
  const both = await Promise.allSettled([shared.ask('a', fail), shared.ask('a', fail)]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await shared.ask('a', async () => ({}))).toEqual({});
});
