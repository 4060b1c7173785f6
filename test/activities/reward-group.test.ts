/** A group that the agent's own function rewards: played, then judged by the function in the activity of judges, once. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, test } from 'vitest';

import { JudgeGroupResult, type RolloutInput } from '../../core/contract/contract.ts';
import { NOTHING_SPENT } from '../../core/rules/judge-spending.ts';
import { REWARD_GROUP } from '../../core/rules/named-rewards.ts';
import type { Agent, FinishedGroup } from '../../play/agent.ts';
import { judgedKey } from '../../store/layout.ts';
import { readGroup } from '../../store/records/runs/run-reader.ts';
import { say } from '../play/play.ts';
import { call, openWorld, rolloutInput, type World } from './world.ts';

async function open(definition: Partial<Agent>): Promise<{ world: World; input: RolloutInput }> {
  const world = await openWorld(definition);
  return { world, input: await rolloutInput(world.store, { judge: REWARD_GROUP }) };
}

async function playAndJudge({ world, input }: { world: World; input: RolloutInput }, attempt = 1) {
  const played = await call(world.activities.rollout, input);
  expect(played.use).toBe('unjudged');
  return call(world.activities.judgeGroup, { group: input }, { attempt });
}

const last = ({ messages }: { messages: readonly { content?: unknown }[] }) => String(messages.at(-1)?.content);
const judgedOf = async (world: World, input: RolloutInput) => (await readGroup(world.store, input))!.judged;

test('the function sees the scenario, the conversations and what the rollouts returned, and gives all rewards', async () => {
  const seen: FinishedGroup[] = [];
  const { world, input } = await open({
    rewardGroup: (group) => {
      seen.push(group);
      return group.attempts.map((_, index) => index / 10);
    },
  });
  const result = await playAndJudge({ world, input });
  expect(JudgeGroupResult.parse(result)).toEqual(result);
  expect(result.group).toMatchObject({ use: 'trained', rewards: [0, 0.1, 0.2, 0.3, 0.4, 0.5], failed: 0 });
  expect(result.spent).toEqual(NOTHING_SPENT);
  const { rollouts, judged } = (await readGroup(world.store, input))!;
  expect(seen[0]?.scenario).toEqual({ id: 's4' });
  expect(seen[0]?.attempts).toMatchObject(
    rollouts.attempts.map(({ attempt, reward, metrics, logs }) => ({
      attempt,
      reward,
      rewards: {},
      metrics,
      logs,
      truncated: false,
      messages: [{ content: 'first of s4' }, { role: 'assistant' }],
      additionalHistories: [[{ content: 'second' }, { role: 'assistant' }]],
    })),
  );
  expect(judged).toMatchObject({ judge: 'rewardGroup', rewards: result.group.rewards });
  expect(judged).not.toHaveProperty('namedRewards');
  // The rollout's own reward stays visible.
  const own = rollouts.attempts.reduce((sum, { reward }) => sum + reward!, 0) / 6;
  expect(result.group.metrics).toMatchObject({ agentReward: own });
  expect(result.group.metrics).not.toHaveProperty('rulerScore');
});

test('a verdict is computed once: a retry has the first one’s', async () => {
  let asked = 0;
  const { world, input } = await open({ rewardGroup: ({ attempts }) => attempts.map(() => ++asked) });
  const first = await playAndJudge({ world, input });
  const again = await call(world.activities.judgeGroup, { group: input }, { attempt: 2 });
  expect({ ...again, seconds: 0 }).toEqual({ ...first, seconds: 0 });
  expect(asked).toBe(6);
});

test('rewards by name: the function fills in those that the rollout did not return', async () => {
  const { world, input } = await open({
    rewards: { even: 1, novel: 0.5 },
    async rollout(context) {
      const digit = Number(await say(context, 'x'));
      return { rewards: { even: digit % 2 === 0 ? 1 : 0 }, metrics: { digit } };
    },
    rewardGroup: ({ attempts }) =>
      attempts.map((attempt) => {
        expect(Object.keys(attempt.metrics)).toEqual(['digit']);
        return { novel: attempts.filter((other) => last(other) === last(attempt)).length === 1 ? 1 : 0 };
      }),
  });
  const { group } = await playAndJudge({ world, input });
  const { rollouts, judged } = (await readGroup(world.store, input))!;
  const digits = rollouts.attempts.map(({ metrics }) => metrics['digit']);
  const novel = digits.map((digit) => (digits.filter((other) => other === digit).length === 1 ? 1 : 0));
  expect(rollouts.attempts.map(({ reward }) => reward)).toEqual(
    digits.map((digit) => (Number(digit) % 2 === 0 ? 1 : 0)),
  );
  expect(judged?.namedRewards).toEqual(novel.map((value) => ({ novel: value })));
  expect(group.rewards).toEqual(rollouts.attempts.map(({ reward }, index) => reward! + 0.5 * novel[index]!));
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  expect(group.metrics).toMatchObject({
    'reward/even': mean(rollouts.attempts.map(({ reward }) => reward!)),
    'reward/novel': mean(novel),
  });
  expect(group.metrics).not.toHaveProperty('agentReward');
});

test('attempts that failed are left out, and a group of them alone asks for nothing', async () => {
  let played = 0;
  const sizes: number[] = [];
  const { world, input } = await open({
    async rollout(context) {
      await say(context, 'x');
      if (played++ % 2 === 1) throw new Error('lost');
    },
    rewardGroup: ({ attempts }) => {
      sizes.push(attempts.length);
      return attempts.map(({ attempt, reward }) => attempt + (reward ?? 10));
    },
  });
  const { group } = await playAndJudge({ world, input });
  const rewards = (await judgedOf(world, input))?.rewards ?? [];
  expect(group).toMatchObject({ failed: 3, use: 'trained', rewards: rewards.filter((reward) => reward !== null) });
  expect(rewards.map((reward, attempt) => reward === null || reward === attempt + 10)).not.toContain(false);
  played = 1;
  const next = await rolloutInput(world.store, { judge: REWARD_GROUP, group: 4, attempts: 1 });
  const empty = await playAndJudge({ world, input: next });
  expect(empty.group).toMatchObject({ failed: 1, rewards: [] });
  expect(sizes).toEqual([3]);
});

test('rewards of turns are parts of the reward, as without the function', async () => {
  const { world, input } = await open({
    async rollout({ openai, model, rewardTurn, random }) {
      const completion = await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'x' }] });
      rewardTurn(completion, 0.25);
      return random();
    },
    rewardGroup: ({ attempts }) => attempts.map(({ reward }) => reward ?? 0),
  });
  const { group } = await playAndJudge({ world, input });
  const { rollouts, judged } = (await readGroup(world.store, input))!;
  expect(group.rewards).toEqual(rollouts.attempts.map(({ reward }) => reward));
  expect(judged?.turnRewards).toEqual(Array.from({ length: 6 }, () => [0.25]));
});

describe('a function that gives no rewards is tried again later, as a judge is, and nothing is recorded', () => {
  const named = { rewards: { right: 1, novel: 1 }, rollout: () => ({ rewards: { right: 1 } }) };
  test.each<[string, Partial<Agent>, string]>([
    ['throws', { rewardGroup: () => Promise.reject(new RangeError('no idea')) }, 'with RangeError: no idea'],
    [
      'returns none',
      { rewardGroup: () => undefined as never },
      'must return a list of 6 rewards, one for each attempt, got',
    ],
    ['returns too few', { rewardGroup: () => [1] }, 'must return a list of 6 rewards, one for each attempt, got 1;'],
    [
      'returns no number',
      { rewardGroup: ({ attempts }) => attempts.map(() => Number.NaN) },
      'of attempt 0 must be a finite number from -1000000 to 1000000, got NaN',
    ],
    [
      'returns names without weights',
      { rewardGroup: ({ attempts }) => attempts.map(() => ({ a: 1 })) },
      'a finite number from -1000000 to 1000000, got {"a":1}',
    ],
    [
      'leaves a name out',
      { ...named, rewardGroup: ({ attempts }) => attempts.map(() => ({})) },
      'must have the rewards novel, got none for novel',
    ],
    [
      'returns a number for names',
      { ...named, rewardGroup: ({ attempts }) => attempts.map(() => 1) },
      'must have the rewards right, novel by name, got 1',
    ],
    [
      'returns a name of the rollout’s',
      { ...named, rewardGroup: ({ attempts }) => attempts.map(() => ({ right: 1, novel: 1 })) },
      'must not have right, which its rollout returned',
    ],
  ])('%s', async (_, definition, message) => {
    const { world, input } = await open(definition);
    await call(world.activities.rollout, input);
    const error: unknown = await call(world.activities.judgeGroup, { group: input }, { attempt: 2 }).catch(
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof ApplicationFailure)) throw new Error(`expected an ApplicationFailure, got ${String(error)}`);
    expect(error).toMatchObject({ type: 'JudgeFailed', nonRetryable: false, nextRetryDelay: 20_000 });
    expect(error.message).toContain('rewardGroup of the agent guess failed at the scenario s4');
    expect(error.message).toContain(message);
    expect(existsSync(join(world.root, judgedKey(input)))).toBe(false);
  });
});

test('an agent that has no such function any more is BadConfig', async () => {
  const { world, input } = await open({});
  await call(world.activities.rollout, input);
  await expect(call(world.activities.judgeGroup, { group: input })).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringContaining('is rewarded by rewardGroup, which its agent guess no longer has') as string,
  });
});
