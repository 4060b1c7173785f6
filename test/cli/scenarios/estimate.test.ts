import { expect, test } from 'vitest';
import { addUp } from '../../../cli/scenarios/estimate.ts';
import type { HostedModel, Price } from '../../../play/connections/providers.ts';

/** A thousand calls of a thousand tokens each way, at most twice as many. */
function calls(price: Price | null, isFree = false) {
  const hosted: HostedModel = {
    name: 'm',
    model: 'm',
    baseUrl: 'http://m',
    key: null,
    keyVariable: null,
    maxTokensName: null,
  };
  const range = { low: 1e6, high: 2e6 };
  const model = { hosted: { ...hosted, ...(isFree && { isFree }) }, price };
  return { model, calls: { low: 1000, high: 2000 }, prompt: range, completion: range };
}

test('the cost is the sum of all calls, and unknown where one of their models has no price', () => {
  const [paid, free, unknown] = [calls({ prompt: 1, completion: 10 }), calls(null, true), calls(null)];
  expect(addUp([paid, free])).toEqual({
    calls: { low: 2000, high: 4000 },
    tokens: { low: 4e6, high: 8e6 },
    usd: { low: 11, high: 22 },
  });
  expect(addUp([paid, unknown]).usd).toBeNull();
});
