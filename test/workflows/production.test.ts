import { describe, expect, test } from 'vitest';

import { hashOf } from '../../core/text/hashes.ts';
import { bed } from './bed.ts';
import { CACHES } from './harness.ts';

const SAMPLER = { branch: 0, step: 9, manifestSha256: hashOf('m'), adapterSha256: hashOf('a') };

describe.each(CACHES)('recorded conversations, %s', (_, maxCachedWorkflows) => {
  test('are trained instead of attempts, between two evaluations', async () => {
    const production = {
      run: 'demo',
      recordings: { key: `blobs/${hashOf('r')}`, sha256: hashOf('r'), bytes: 1 },
      conversations: 5,
      samplers: [{ ...SAMPLER, age: 0 }],
      leftOut: {},
    };
    const config = {
      steps: 3,
      groupsPerStep: 2,
      continueAsNewEvery: 2,
      parent: { ...SAMPLER, run: 'demo' },
      production,
    };
    const train = { baseline: 'rae' } as const;
    await bed.play({ maxCachedWorkflows, config: { ...config, train } }, async ({ handle, fake }) => {
      const state = await handle.result();
      expect(fake.done.map(({ name }) => name)).toEqual(
        'prepare initialise evaluate gather judge train gather judge train gather judge train evaluate'.split(' '),
      );
      expect(fake.trainings.map(({ groups, samplers }) => [groups.length, samplers?.[0]?.staleness])).toEqual([
        [2, undefined],
        [2, 1],
        [1, 2],
      ]);
      expect(state).toMatchObject({ state: 'completed', step: 3 });
    });
  });
});
