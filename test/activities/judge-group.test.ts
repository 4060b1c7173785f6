import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ApplicationFailure } from '@temporalio/common';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { GroupResult, JudgeGroupResult, type RolloutInput } from '../../core/contract/contract.ts';
import { createRuler, type RulerOptions } from '../../sdk/ruler/create-ruler.ts';
import { judgedKey } from '../../store/layout.ts';
import { readGroup } from '../../store/records/runs/run-reader.ts';
import { say } from '../play/play.ts';
import { ENV } from '../play/judge/judging.ts';
import {
  JUDGE_KEY,
  JUDGE_KEY_VARIABLE,
  readPrompt,
  startScriptedJudge,
  type ScriptedJudge,
} from '../play/judge/scripted-judge.ts';
import { call, createEnvironment, failureOf, openWorld, rolloutInput, type World } from './world.ts';

let scripted: ScriptedJudge;
beforeEach(async () => {
  scripted = await startScriptedJudge();
  scripted.scoreBy((lines) => Number((lines.at(-1) as { content: string }).content) / 10);
});
afterEach(() => scripted.close());

type Play = Parameters<typeof openWorld>[0];

async function judgedWorld(
  options: Partial<RulerOptions> = {},
  play: Play = {},
  env: NodeJS.ProcessEnv = ENV,
): Promise<World> {
  const judge = { baseUrl: scripted.url, model: 'scripted', keyVariable: JUDGE_KEY_VARIABLE };
  return openWorld({ ...play, reward: createRuler({ judge, ...options }) }, { env });
}

const NAME = 'endpoint/scripted';
const judgedInput = (world: World, changes: Partial<RolloutInput> = {}) =>
  rolloutInput(world.store, { judge: NAME, ...changes });

/** The digits that the attempts of a group ended with. */
async function digitsOf(world: World, input: RolloutInput): Promise<number[]> {
  const played = await readGroup(world.store, input);
  return played!.rollouts.attempts.map(({ calls }) => Number(calls.at(-1)!.message.content));
}

test('a group whose agent names a judge is played and not judged, until its judge has compared its attempts', async () => {
  const world = await judgedWorld({ usdPerMillionInput: 1, usdPerMillionOutput: 10 });
  const input = await judgedInput(world);
  const played = await call(world.activities.rollout, input);
  expect(GroupResult.parse(played)).toMatchObject({ use: 'unjudged', judgedSha256: null, attempts: 6 });
  expect(existsSync(join(world.root, judgedKey(input)))).toBe(false);
  const result = await call(world.activities.judgeGroup, { group: input });
  expect(JudgeGroupResult.parse(result)).toEqual(result);
  const digits = await digitsOf(world, input);
  expect(result.group).toMatchObject({ use: 'trained', rewards: digits.map((digit) => digit / 10), failed: 0 });
  expect(result.spent).toEqual({ calls: 1, cached: 0, promptTokens: 1000, completionTokens: 100, usd: 0.002 });
  const own = played.rewards.reduce((sum, reward) => sum + reward, 0) / 6;
  expect(result.group.metrics).toMatchObject({ agentReward: own, evenRate: expect.any(Number) as number });
  expect((await readGroup(world.store, input))!.judged).toMatchObject({
    judge: NAME,
    rewards: result.group.rewards,
    scores: result.group.rewards,
    explanations: Array.from({ length: 6 }, () => '4 lines'),
    rolloutsSha256: played.rolloutsSha256,
  });
});

test('the agent’s own reward is weighed in', async () => {
  const world = await judgedWorld({ weights: { ruler: 2, agent: 0.5 } });
  const input = await judgedInput(world);
  const { rewards } = await call(world.activities.rollout, input);
  const { group } = await call(world.activities.judgeGroup, { group: input });
  const digits = await digitsOf(world, input);
  expect(group.rewards).toEqual(digits.map((digit, index) => (2 * digit) / 10 + 0.5 * rewards[index]!));
});

test('where the judge alone gives the reward, the agent needs none of its own', async () => {
  const world = await judgedWorld(
    {},
    {
      async rollout(context) {
        await say(context, 'x');
        context.metric('calls', 1);
      },
    },
  );
  const input = await judgedInput(world);
  await call(world.activities.rollout, input);
  const { group } = await call(world.activities.judgeGroup, { group: input });
  expect(group).toMatchObject({ failed: 0, use: 'trained', metrics: { calls: 1 } });
  expect(group.metrics).not.toHaveProperty('agentReward');
});

test('where its own reward is weighed in, an attempt without one has failed', async () => {
  const world = await judgedWorld({ weights: { ruler: 1, agent: 1 } }, { rollout: () => undefined });
  const input = await judgedInput(world);
  expect(await call(world.activities.rollout, input)).toMatchObject({ failed: 6, rewards: [] });
});

test('attempts that failed are not shown to the judge, and a group of them is not judged', async () => {
  let played = 0;
  const world = await judgedWorld(
    {},
    {
      async rollout(context) {
        const attempt = played++;
        await say(context, 'x');
        if (attempt > 0) throw new Error('lost');
      },
    },
  );
  const input = await judgedInput(world);
  await call(world.activities.rollout, input);
  const { group } = await call(world.activities.judgeGroup, { group: input });
  expect(group).toMatchObject({ failed: 5, use: 'too-few-attempts' });
  expect(readPrompt(scripted.asked[0]!.messages).attempts.size).toBe(1);
  const next = await judgedInput(world, { group: 4 });
  await call(world.activities.rollout, next);
  const empty = await call(world.activities.judgeGroup, { group: next });
  expect(empty).toMatchObject({ group: { failed: 6, rewards: [] }, spent: { calls: 0, cached: 0 } });
  expect(scripted.asked).toHaveLength(1);
});

describe('nothing is paid for twice', () => {
  test('a group that is judged is not judged again, and what it cost is still known', async () => {
    const world = await judgedWorld();
    const input = await judgedInput(world);
    await call(world.activities.rollout, input);
    const first = await call(world.activities.judgeGroup, { group: input });
    const again = await call(world.activities.judgeGroup, { group: input }, { attempt: 2 });
    expect({ ...again, seconds: 0 }).toEqual({ ...first, seconds: 0 });
    expect(scripted.asked).toHaveLength(1);
  });

  test('one whose worker died after the answer is judged from what was answered', async () => {
    const world = await judgedWorld();
    const input = await judgedInput(world);
    await call(world.activities.rollout, input);
    const first = await call(world.activities.judgeGroup, { group: input });
    rmSync(join(world.root, judgedKey(input)));
    rmSync(join(world.root, 'judgments'), { recursive: true });
    const again = await call(world.activities.judgeGroup, { group: input }, { attempt: 2 });
    expect({ ...again, seconds: 0 }).toEqual({ ...first, seconds: 0 });
    expect(scripted.asked).toHaveLength(1);
  });

  test('another run that plays the same asks the judge 0 times', async () => {
    const world = await judgedWorld();
    const results = [];
    for (const run of ['first', 'second']) {
      const input = await judgedInput(world, { run });
      await call(world.activities.rollout, input);
      results.push(await call(world.activities.judgeGroup, { group: input }));
    }
    expect(results[1]!.group).toEqual(results[0]!.group);
    expect(results[1]!.spent).toMatchObject({ calls: 0, cached: 1, promptTokens: 0 });
    expect(scripted.asked).toHaveLength(1);
  });
});

describe('a judge that cannot be asked', () => {
  async function judgeAfter(reply: Parameters<ScriptedJudge['replyNext']>, world: World): Promise<ApplicationFailure> {
    const input = await judgedInput(world);
    await call(world.activities.rollout, input);
    scripted.replyNext(...reply);
    return failureOf(call(world.activities.judgeGroup, { group: input }));
  }

  test('for want of its key is BadConfig that names the variable', async () => {
    const failure = await judgeAfter([], await judgedWorld({}, {}, {}));
    expect(failure).toMatchObject({ type: 'BadConfig', nonRetryable: true });
    expect(failure.message).toContain(`needs a key in ${JUDGE_KEY_VARIABLE}, which is not set`);
    expect(scripted.asked).toHaveLength(0);
  });

  test('because its key is wrong is BadConfig', async () => {
    const failure = await judgeAfter([{ status: 401 }], await judgedWorld());
    expect(failure).toMatchObject({ type: 'BadConfig', nonRetryable: true });
  });

  test('because it talks nonsense is asked again, later, and what it cost is known', async () => {
    const world = await judgedWorld();
    const failure = await judgeAfter([{ text: 'no' }, { text: 'neither' }], world);
    expect(failure).toMatchObject({ type: 'JudgeFailed', nonRetryable: false, nextRetryDelay: 10_000 });
    const { spent } = await call(world.activities.judgeGroup, { group: await judgedInput(world) }, { attempt: 2 });
    expect(spent.calls).toBe(3);
  });

  test('for a while is left alone for as long as it asks', async () => {
    const failure = await judgeAfter([{ status: 429, headers: { 'retry-after': '90' } }], await judgedWorld());
    expect(failure).toMatchObject({ type: 'JudgeFailed', nonRetryable: false, nextRetryDelay: 90_000 });
  });

  test('says with each heartbeat whom it waits for, why, and when it asks again', async () => {
    const world = await judgedWorld();
    const input = await judgedInput(world);
    await call(world.activities.rollout, input);
    scripted.replyNext({ status: 429, headers: { 'retry-after': '2' }, body: '{"error":{"message":"slow down"}}' });
    const environment = createEnvironment();
    const beats: unknown[] = [];
    environment.on('heartbeat', (detail: unknown) => beats.push(detail));
    const rollout = { ...input.rollout, callRetryBudgetMs: 10_000 };
    await environment.run(world.activities.judgeGroup, { group: { ...input, rollout } });
    expect(beats[0]).toEqual({
      step: 2,
      part: '3',
      judge: NAME,
      waiting: {
        attempts: 1,
        reason: '429: slow down',
        since: expect.any(String) as string,
        nextTryAt: expect.any(String) as string,
      },
    });
  });

  test('because its agent names none any more is BadConfig', async () => {
    const world = await openWorld();
    const input = await judgedInput(world);
    await call(world.activities.rollout, input);
    const failure = await failureOf(call(world.activities.judgeGroup, { group: input }));
    expect(failure.message).toContain('no longer has reward: ruler({ … })');
  });
});

test('the run’s own judge judges, though the agent names another one; that one’s prices do not count', async () => {
  const prices = { usdPerMillionInput: 1, usdPerMillionOutput: 2 };
  const env = { XAI_BASE_URL: scripted.url, XAI_API_KEY: JUDGE_KEY };
  const world = await judgedWorld({ judge: 'openai/gpt-5-mini', ...prices }, {}, env);
  const input = await judgedInput(world, { judge: 'xai/grok' });
  await call(world.activities.rollout, input);
  const { group, spent } = await call(world.activities.judgeGroup, { group: input });
  expect(group.use).toBe('trained');
  expect(spent).toMatchObject({ calls: 1, usd: null });
  expect((await readGroup(world.store, input))!.judged).toMatchObject({ judge: 'xai/grok' });
  expect(world.warnings).toEqual([]);
});

test('an endpoint that the agent names no more is noted, and its new judge judges', async () => {
  const world = await judgedWorld();
  const input = await judgedInput(world, { judge: 'endpoint/older' });
  await call(world.activities.rollout, input);
  expect((await call(world.activities.judgeGroup, { group: input })).group.use).toBe('trained');
  expect(world.warnings).toEqual(['the judge has changed since the run started; the run continues with the new judge']);
});

describe('the run’s own engine as judge', () => {
  async function engineWorld(model: string): Promise<World> {
    return openWorld(
      { reward: createRuler({ judge: `engine/${model}` }) },
      {},
      {
        answer({ messages, seed }) {
          const { attempts } = readPrompt(messages.map(({ role, content }) => ({ role, content: content ?? '' })));
          if (attempts.size === 0) return String(seed % 10);
          const scores = [...attempts.keys()].map((id, index) => ({ id, explanation: 'own', score: index / 10 }));
          return JSON.stringify({ scores });
        },
      },
    );
  }

  test('a base model costs nothing', async () => {
    const world = await engineWorld('pocket');
    const input = await rolloutInput(world.store, { judge: 'engine/pocket' });
    await call(world.activities.rollout, input);
    const { group, spent } = await call(world.activities.judgeGroup, { group: input });
    expect(group.use).toBe('trained');
    expect(spent).toMatchObject({ calls: 1, usd: 0 });
    expect(world.engine.executed.at(-1)!.request).toMatchObject({ model: 'pocket', temperature: 0 });
  });

  test('a checkpoint that is not committed is BadConfig', async () => {
    const world = await engineWorld('demo@100');
    const input = await rolloutInput(world.store, { judge: 'engine/demo@100' });
    await call(world.activities.rollout, input);
    const failure = await failureOf(call(world.activities.judgeGroup, { group: input }));
    expect(failure.message).toContain('the judge engine/demo@100 must be a committed checkpoint in this store');
  });
});
