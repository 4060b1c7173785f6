import { expect, test } from 'vitest';

import { checkTurnsCount, mayLackReward } from '../../../play/attempt-result.ts';
import { defineAgent, review } from '../../../sdk/index.ts';

const scenarios = [{ id: 'a' }];

test('a review waits as external rewards do, and says how attempts are compared', () => {
  expect(review({ pairwise: true, timeoutMs: 1000, onTimeout: 0.5, minimum: 3 })).toMatchObject({
    name: null,
    timeoutMs: 1000,
    onTimeout: 0.5,
    minimum: 3,
    review: {
      pairwise: true,
      comparisonsPerAttempt: 3,
      reviewers: 1,
      question: null,
      weights: { review: 1, agent: 0 },
    },
  });
  expect(review().review).toMatchObject({ pairwise: false, reviewers: 1 });
});

test('the rollout may return nothing, unless its own reward has a weight', () => {
  const alone = defineAgent({ name: 'alone', scenarios, reward: review(), rollout: () => {} });
  expect(mayLackReward(alone)).toBe(true);
  expect(() => checkTurnsCount(alone)).toThrow(/give the agent a weight in review\(\{ weights \}\)/);
  const weighed = defineAgent({
    name: 'weighed',
    scenarios,
    reward: review({ weights: { review: 1, agent: 0.5 } }),
    rollout: () => 1,
  });
  expect(mayLackReward(weighed)).toBe(false);
  expect(() => checkTurnsCount(weighed)).not.toThrow();
});

test.each<[object, RegExp]>([
  [{ pairwise: 'yes' }, /^pairwise of review must be true or false, got "yes"; pass true/],
  [{ comparisonsPerAttempt: 3 }, /^comparisonsPerAttempt of review has no effect without pairwise: true; add it/],
  [
    { pairwise: true, comparisonsPerAttempt: 1 },
    /must be a whole number from 2 to 100, got 1; .*fewer than 2 leave attempts unconnected/,
  ],
  [{ reviewers: 0 }, /^reviewers of review must be a whole number from 1 to 100, got 0; pass/],
  [{ question: ' ' }, /^question of review must be text of at most 2000 characters, got " "; say/],
  [{ timeoutMs: 0 }, /^timeoutMs of review must be a whole number of milliseconds/],
  [{ timeoutMs: 9, onTimeout: 2 }, /^onTimeout of review must be 'drop' or a score from 0 to 1, got 2; pass/],
  [{ weights: { review: 0, agent: 1 } }, /^weights of review must be .* review above 0/],
  [{ weights: { review: 1 } }, /^weights of review must be \{ review, agent \}/],
  [{ name: 'csat' }, /^review has the options .*, got name; correct/],
])('review(%j) is refused', (options, message) => {
  expect(() => review(options)).toThrow(message);
});

test('rewards by name are refused beside a review', () => {
  const agent = {
    name: 'named',
    scenarios,
    rewards: { a: 1 },
    reward: review(),
    rollout: () => ({ rewards: { a: 1 } }),
  };
  expect(() => defineAgent(agent as never)).toThrow(/^rewards of the agent named cannot be combined with review/);
});
