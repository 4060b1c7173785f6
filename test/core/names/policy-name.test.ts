import { expect, test } from 'vitest';

import {
  parseCheckpointName,
  parsePolicyName,
  parseTrainedName,
  policyName,
  type CheckpointName,
} from '../../../core/names/policy-name.ts';

test('a policy name says run, branch and step, and is read back', () => {
  for (const policy of [
    { run: 'demo', branch: 0, step: 0 },
    { run: 'a.b-c_2', branch: 3, step: 12 },
  ]) {
    expect(parsePolicyName(policyName(policy))).toEqual(policy);
    expect(parseCheckpointName(policyName(policy))).toEqual({ ...policy, branch: policy.branch || null });
  }
  expect(policyName({ run: 'demo', branch: 2, step: 7 })).toBe('demo~2@7');
});

test('what is no policy name is none', () => {
  for (const name of ['pocket', 'demo@', 'demo@01', 'demo~0@1', 'Demo@1', '../x@1', 'a/b@1', 'demo@1 ', '@1']) {
    expect(parsePolicyName(name)).toBeNull();
  }
});

test.each<[string, CheckpointName]>([
  ['demo', { run: 'demo', branch: null, step: 'latest' }],
  ['demo@latest', { run: 'demo', branch: null, step: 'latest' }],
  ['demo@best', { run: 'demo', branch: null, step: 'best' }],
  ['demo@0', { run: 'demo', branch: null, step: 0 }],
  ['nightly-1.a_b@120', { run: 'nightly-1.a_b', branch: null, step: 120 }],
  ['demo~2', { run: 'demo', branch: 2, step: 'latest' }],
  ['demo~0@latest', { run: 'demo', branch: 0, step: 'latest' }],
  ['demo~0@3', { run: 'demo', branch: 0, step: 3 }],
  ['demo~2@7', { run: 'demo', branch: 2, step: 7 }],
  ['demo~2@best', { run: 'demo', branch: 2, step: 'best' }],
])('a person names a checkpoint %s', (text, name) => {
  expect(parseCheckpointName(text)).toEqual(name);
});

test.each(['', '@1', 'demo@', 'demo~', 'demo~@1', 'demo~01@1', 'demo@01', 'demo@-1', 'demo@1.5', 'demo@last'])(
  '%j names no checkpoint',
  (text) => expect(parseCheckpointName(text)).toBeNull(),
);

test.each(['Demo', '../demo@1', 'a/b', 'demo@1 ', 'demo@Best', 'demo@1@2', 'demo@1~2', `${'a'.repeat(64)}@1`])(
  '%j names no checkpoint either',
  (text) => expect(parseCheckpointName(text)).toBeNull(),
);

test('a policy beside main follows the checkpoint, and main is not written', () => {
  const place = { run: 'demo', branch: 2, step: 7 };
  expect(policyName({ ...place, policy: 'b' })).toBe('demo~2@7:b');
  expect(policyName({ ...place, policy: 'main' })).toBe('demo~2@7');
  expect(parsePolicyName('demo~2@7:b')).toEqual({ ...place, policy: 'b' });
  expect(parsePolicyName('demo~2@7:main')).toStrictEqual(place);
  expect(parseTrainedName('demo:b')).toEqual({ run: 'demo', branch: null, step: 'latest', policy: 'b' });
  expect(parseTrainedName('demo@best')).toStrictEqual(parseCheckpointName('demo@best'));
  for (const name of ['demo@1:', 'demo@1:B', 'demo@1:../b', 'demo@1:a:b', `demo@1:${'b'.repeat(33)}`])
    expect(parseTrainedName(name) ?? parsePolicyName(name)).toBeNull();
  // Commands on whole checkpoints refuse one of its policies.
  expect(parseCheckpointName('demo@1:b')).toBeNull();
});
