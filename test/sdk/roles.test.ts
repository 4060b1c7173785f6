import { expect, test } from 'vitest';

import { defineAgent, frozen, league, policy } from '../../sdk/index.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const scenario = { id: 'a' };
const base = { name: 'game', scenarios: [scenario] };
const ask = async ({ openai, model }: { openai: { chat: { completions: { create: Function } } }; model: string }) => {
  const { choices } = await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'move?' }] });
  return choices[0].message.content as string;
};

const game = (roleRewards: unknown) =>
  defineAgent({
    ...base,
    roles: { white: policy(), black: policy('b'), past: league({ every: 10, keep: 5 }) },
    async rollout({ roles }) {
      for (const role of [roles.white, roles.black, roles.past]) await ask(role);
      return { roleRewards: roleRewards as { white: number; black: number; past: number } };
    },
  });

test('two roles with the same prompt are two calls, each of its role', async () => {
  const answers = ['one', 'two', 'three'];
  const played = await playAgent(game({ white: 1, black: -1, past: 0 }), { scenario, answers });
  expect(played.calls.map(({ role, message }) => [role, message.content])).toEqual([
    ['white', 'one'],
    ['black', 'two'],
    ['past', 'three'],
  ]);
  expect(new Set(played.calls.map(({ key }) => key)).size).toBe(3);
  expect(played).toMatchObject({ reward: 0, metrics: { 'reward/white': 1, 'reward/black': -1, 'calls/black': 1 } });
});

test.each([
  [
    { white: 1, past: 0 },
    /roleRewards\.black must be a finite number from -1000000 to 1000000, or null if the role did not play, got undefined/,
  ],
  [{ white: 1, black: Number.NaN, past: 0 }, /roleRewards\.black must be a finite number.*got NaN/],
  [{ white: 1, black: 1, past: 0, red: 1 }, /may name the roles white, black, past, got red/],
  [{ white: null, black: null, past: 0 }, /must have a number for a role that is trained/],
  [1, /must return the rewards of its roles, got 1/],
])('rewards of roles must be complete: %j', async (rewards, failure) => {
  const played = await playAgent(game(rewards), { scenario, answers: () => 'a' });
  expect(played.failure).toMatch(failure);
  expect(played.reward).toBeNull();
});

test('an attempt is rewarded with the mean of the roles that were trained and played', async () => {
  const played = await playAgent(game({ white: 1, black: null, past: -1 }), { scenario, answers: () => 'a' });
  expect(played.reward).toBe(1);
  expect(played.metrics).not.toHaveProperty('reward/black');
});

test('a hosted model plays its role, journaled and never trained', async () => {
  const agent = defineAgent({
    ...base,
    roles: { solver: policy(), user: frozen('openai/gpt-5-mini') },
    async rollout({ roles: { solver, user } }) {
      await ask(solver);
      await ask(user);
      return { roleRewards: { solver: 1 } };
    },
  });
  const hosted = { 'openai/gpt-5-mini': ['from elsewhere'] };
  const played = await playAgent(agent, { scenario, answers: ['a'], hosted });
  expect(played.calls.map(({ role }) => role)).toEqual(['solver']);
  expect(played.hostedCalls).toMatchObject([{ model: 'openai/gpt-5-mini', role: 'user' }]);
});

test('the plain client of an agent with roles is refused', async () => {
  const agent = defineAgent({
    ...base,
    roles: { white: policy() },
    async rollout(context) {
      await ask(context);
      return { roleRewards: { white: 1 } };
    },
  });
  await expect(playAgent(agent, { scenario, answers: ['a'] })).rejects.toThrow(
    'an agent with roles must call the client of a role',
  );
});

const rollout = () => ({ roleRewards: { white: 1 } });

test.each([
  [{ roles: {} }, /must have 1 to 16 roles, got 0/],
  [{ roles: { White: policy() } }, /must be named by lower case letters.*got "White"/],
  [{ roles: { white: 'main' } }, /the role white .* must be policy\(\), frozen\(…\) or league/],
  [{ roles: { white: policy('b') } }, /one role of the agent game must be policy\(\)/],
  [{ roles: { white: policy(), old: frozen('gpt') } }, /the role old .* must be frozen as provider\/model or RUN@STEP/],
  [
    { roles: { white: policy(), past: league({ every: 1, keep: 1, of: 'b' }) } },
    /league of the role past must be of a policy that a role trains \(main\)/,
  ],
  [{ roles: { white: policy() }, captureModel: 'gpt' }, /captureModel has no effect with roles/],
  [{ competing: true }, /competing of the agent game has no effect without roles/],
])('%j is refused in one line', (changes, refusal) => {
  expect(() => defineAgent({ ...base, rollout, ...changes } as never)).toThrow(refusal);
});

test.each([
  [() => policy('B'), /policy must be named by lower case letters/],
  [() => frozen(''), /frozen must be given a hosted model or a checkpoint/],
  [() => league({ every: 0, keep: 5 }), /every of league must be a whole number of at least 1/],
  [() => league({ every: 1, keep: 65 }), /keep of league must be a whole number from 1 to 64, got 65/],
])('a player that cannot be is refused', (define, refusal) => {
  expect(define).toThrow(refusal);
});
