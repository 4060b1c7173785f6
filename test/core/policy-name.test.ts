import { expect, test } from 'vitest';

import { parsePolicyName, policyName } from '../../core/policy-name.ts';

test('a policy name says run, branch and step, and is read back', () => {
  for (const policy of [
    { run: 'demo', branch: 0, step: 0 },
    { run: 'a.b-c_2', branch: 3, step: 12 },
  ]) {
    expect(parsePolicyName(policyName(policy))).toEqual(policy);
  }
  expect(policyName({ run: 'demo', branch: 2, step: 7 })).toBe('demo~2@7');
});

test('what is no policy name is none', () => {
  for (const name of ['pocket', 'demo@', 'demo@01', 'demo~0@1', 'Demo@1', '../x@1', 'a/b@1', 'demo@1 ', '@1']) {
    expect(parsePolicyName(name)).toBeNull();
  }
});
