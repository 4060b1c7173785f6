import { expect, test } from 'vitest';

import type { EvalResult } from '../../../core/contract/contract.ts';
import {
  countSkipped,
  describeRemedy,
  describeSkipped,
  describeUnused,
  hintIfStalled,
  warnOfSkips,
} from '../../../core/reports/learning-signal.ts';

test('why groups were not trained is said in words, by reason', () => {
  expect(describeUnused({ 'no-variance': 8 })).toBe('every group had identical rewards (no learning signal)');
  expect(describeUnused({ 'no-variance': 6 }, false)).toBe('6 groups had identical rewards (no learning signal)');
  expect(describeUnused({ 'too-few-attempts': 2, 'all-truncated': 1 })).toBe(
    '2 groups had too many failed attempts, 1 group had only truncated attempts',
  );
  expect(describeUnused({})).toBe('there were no groups');
  expect(describeSkipped(3, { 'no-sampled-tokens': 8 })).toBe(
    'step 3 was skipped: every group had no tokens sampled by the model; the policy is unchanged',
  );
});

test('the second skipped step in a row is worth a warning, with a remedy for the most frequent reason first', () => {
  const unused = { 'all-truncated': 1, 'no-variance': 7 };
  expect(warnOfSkips(1, { unused, reward: 0 })).toBeNull();
  expect(warnOfSkips(2, { unused, reward: 0 })).toContain(
    '2 steps in a row were skipped, so the policy is not learning; try',
  );
  expect(describeRemedy(unused)).toMatch(/credit for steps towards the goal.*; a higher token limit/);
  expect(describeRemedy({})).not.toBe('');
  expect(countSkipped([{ groups: 0 }, { groups: 2 }, { groups: 0 }, { groups: 0 }])).toBe(2);
  expect(countSkipped([{ groups: 0 }])).toBe(1);
  expect(countSkipped([])).toBe(0);
});

const held = (reward: number | null): EvalResult => ({
  step: 0,
  attempts: 1,
  failed: 0,
  reward,
  metrics: {},
  rolloutsSha256: '',
});
const step = (reward: number | null, groups = 0) => ({ reward, groups });

test.each([
  ['nothing ever', [0, 0], [step(0), step(0)], '0.000 → 0.000: no attempt ever earned anything; try easier scenarios'],
  ['always the same', [1, 1], [step(1), step(1)], '1.000 → 1.000: every attempt earned the same'],
  ['some of it trained', [0, 0], [step(0), step(0.5, 2)], '0.000 → 0.000: it did not improve; try more steps'],
  ['back where it was', [0.4, 0.4], [step(0.4, 2), step(0.5, 2)], '0.400 → 0.400: it did not improve'],
  ['not evaluated', [null, null], [step(0), step(null), step(0)], 'no attempt ever earned anything'],
] as const)('a reward that stood still is told with what to try: %s', (_, [before, after], steps, hint) => {
  expect(hintIfStalled({ evalBefore: held(before), evalAfter: held(after) }, steps)).toContain(hint);
});

test('a reward that moved, and a run of a single step, need no hint', () => {
  const evals = { evalBefore: held(0.5), evalAfter: held(0.501) };
  expect(hintIfStalled(evals, [step(0.5, 1), step(0.5, 1)])).toBeNull();
  expect(hintIfStalled({ evalBefore: held(0), evalAfter: held(0) }, [step(0)])).toBeNull();
  expect(hintIfStalled({ evalBefore: null, evalAfter: null }, [])).toBeNull();
});
