import { expect, test } from 'vitest';
import { describeHeldOutLoss, findHeldOutLoss } from '../../../views/charts/held-out.ts';

test('the held-out loss of a run is that before its first step and after the last scored one', () => {
  const train = { loss: 2, heldOutLossBefore: 3, heldOutLoss: 1.5, heldOutExamples: 2 };
  const found = findHeldOutLoss([
    { step: 1, train },
    { step: 2, train: { loss: 1 } },
  ]);
  expect(found).toEqual({ before: 3, after: 1.5, examples: 2, step: 1 });
  expect(describeHeldOutLoss(found!)).toBe('3.000 → 1.500 nats per token (2 held-out examples)');
  expect(findHeldOutLoss([{ step: 1, train: {} }])).toBeNull();
});
