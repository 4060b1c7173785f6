/** Groups whose rewards come from outside: played, given rewards, closed and judged, once and from values alone. */
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { JudgeGivenResult, type ExternalConfig, type RolloutInput } from '../../core/contract/contract.ts';
import { EXTERNAL } from '../../core/rules/external-rewards.ts';
import { planGivenJudging, type Over } from '../../core/plan/given.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { external } from '../../sdk/index.ts';
import { judgedKey, rolloutsKey } from '../../store/layout.ts';
import { addGiven, closeLedger, readGiven, type RewardRow } from '../../store/records/rewards/given-rewards.ts';
import { readGroup } from '../../store/records/runs/run-reader.ts';
import { call, openWorld, rolloutInput, type World } from './world.ts';

async function play(definition: Parameters<typeof openWorld>[0] = {}): Promise<{ world: World; input: RolloutInput }> {
  const world = await openWorld({ reward: external(), ...definition });
  const input = await rolloutInput(world.store, { judge: EXTERNAL });
  expect((await call(world.activities.rollout, input)).use).toBe('unjudged');
  return { world, input };
}

async function look(
  world: World,
  input: RolloutInput,
  config: ExternalConfig = {},
  over: Over | null = null,
  info: Parameters<typeof call>[2] = {},
) {
  const run = defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket', judge: EXTERNAL, external: config });
  const result = await call(
    world.activities.judgeGiven,
    planGivenJudging(run, 0, [input], () => over),
    info,
  );
  expect(JudgeGivenResult.parse(result)).toEqual(result);
  return result;
}

async function give(world: World, input: RolloutInput, rewards: Record<number, number>, more: Partial<RewardRow> = {}) {
  for (const [attempt, reward] of Object.entries(rewards)) {
    const row = { attempt: Number(attempt), reward, by: null, note: null, key: null, at: new Date().toISOString() };
    await addGiven(world.store, input, { schema: 1, kind: 'reward', ...row, ...more });
  }
}

const ALL = { 0: 0, 1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4, 5: 0.5 };
const judgedOf = async (world: World, input: RolloutInput) => (await readGroup(world.store, input))!.judged;
const bytesOf = (world: World, input: RolloutInput) => readFileSync(join(world.root, judgedKey(input)), 'utf8');

test('a group waits until all of its attempts have a reward; what the rollout returned is a metric', async () => {
  const { world, input } = await play();
  const before = await look(world, input);
  const waiting = { step: 2, group: 3, missing: 6, attempts: 6, playedAt: expect.any(Number) as number };
  expect(before).toEqual({ decided: [], waiting: [waiting] });
  await give(world, input, { 0: 0, 1: 0.1 });
  expect((await look(world, input)).waiting).toMatchObject([{ missing: 4 }]);
  expect(existsSync(join(world.root, judgedKey(input)))).toBe(false);
  await give(world, input, ALL, { by: 'ann', metrics: { tone: 2 } });
  const { decided } = await look(world, input);
  expect(decided).toMatchObject([{ use: 'trained', rewards: [0, 0.1, 0.2, 0.3, 0.4, 0.5], failed: 0 }]);
  expect(decided[0]!.metrics).toMatchObject({ tone: 2, agentReward: expect.any(Number) as number });
  expect((await readGiven(world.store, input)).at(-1)).toMatchObject({ kind: 'closed', reason: 'complete' });
  expect(await look(world, input)).toEqual({ decided, waiting: [] });
});

test('a group that was given nothing since the last look is not read again', async () => {
  const { world, input } = await play();
  const before = await look(world, input);
  const [file, away] = [join(world.root, rolloutsKey(input)), join(world.root, 'away')];
  renameSync(file, away);
  expect(await look(world, input)).toEqual(before);
  renameSync(away, file);
  await give(world, input, ALL);
  expect((await look(world, input)).decided).toMatchObject([{ use: 'trained' }]);
});

test('a run that is started again under the name of a deleted one is not taken for that one', async () => {
  const { world, input } = await play();
  await give(world, input, { 0: 0, 1: 1, 2: 0 });
  expect((await look(world, input)).waiting).toMatchObject([{ missing: 3 }]);
  rmSync(join(world.root, 'runs'), { recursive: true });
  await call(world.activities.rollout, input);
  const again = { workflowExecution: { workflowId: 'demo', runId: 'another' } };
  expect((await look(world, input, {}, null, again)).waiting).toMatchObject([{ missing: 6 }]);
});

test('the same rewards give the same bytes, in whatever order, by whomever, and if it was killed in between', async () => {
  const [one, other] = [await play(), await play()];
  await give(one.world, one.input, ALL, { by: 'ann', note: 'at once' });
  await look(one.world, one.input);
  await give(other.world, other.input, { 5: 1, 4: 1 });
  await give(other.world, other.input, { 5: 0.5, 3: 0.3, 2: 0.2, 4: 0.4 }, { by: 'bob' });
  await give(other.world, other.input, { 1: 0.1 }, { key: 'k' });
  await give(other.world, other.input, { 0: 0 });
  // Killed between the row that closes the ledger and the verdict.
  await closeLedger(other.world.store, other.input, 'timeout');
  expect(existsSync(join(other.world.root, judgedKey(other.input)))).toBe(false);
  await look(other.world, other.input);
  expect(bytesOf(other.world, other.input)).toBe(bytesOf(one.world, one.input));
});

test('a named reward is added to those of the rollout by its weight', async () => {
  const { world, input } = await play({
    rewards: { csat: 2, short: 0.5 },
    reward: external({ name: 'csat' }),
    rollout: () => ({ rewards: { short: 1 } }),
  });
  await give(world, input, ALL);
  const { decided } = await look(world, input, { name: 'csat', weight: 2 });
  expect(decided[0]!.rewards).toEqual([0.5, 0.7, 0.9, 1.1, 1.3, 1.5]);
  expect(decided[0]!.metrics).toMatchObject({ 'reward/short': 1, 'reward/csat': 0.25 });
  expect((await judgedOf(world, input))!.namedRewards?.[5]).toEqual({ csat: 0.5 });
});

describe('once its time is over', () => {
  test('attempts without a reward are dropped', async () => {
    const { world, input } = await play();
    await give(world, input, { 1: 1, 4: 0 });
    const { decided } = await look(world, input, { timeoutMs: 1 }, 'timeout');
    expect(decided).toMatchObject([{ use: 'trained', rewards: [1, 0], failed: 4 }]);
    expect((await readGiven(world.store, input)).at(-1)).toMatchObject({ kind: 'closed', reason: 'timeout' });
  });

  test('or have the reward that the agent names for them', async () => {
    const { world, input } = await play();
    await give(world, input, { 1: 1, 4: 0.5 });
    const { decided } = await look(world, input, { timeoutMs: 1, onTimeout: -1 }, 'timeout');
    expect(decided).toMatchObject([{ use: 'trained', rewards: [-1, 1, -1, -1, 0.5, -1] }]);
  });

  test('a group with fewer rewards than the minimum is not used', async () => {
    const { world, input } = await play();
    await give(world, input, { 1: 1, 4: 0 });
    const { decided } = await look(world, input, { timeoutMs: 1, onTimeout: -1, minimum: 3 }, 'timeout');
    expect(decided).toMatchObject([{ use: 'too-few-attempts', rewards: [], failed: 6 }]);
  });

  test('a group that nobody rewarded is decided likewise', async () => {
    const { world, input } = await play();
    const { decided } = await look(world, input, { timeoutMs: 1 }, 'timeout');
    expect(decided).toMatchObject([{ use: 'too-few-attempts' }]);
    expect(await readGiven(world.store, input)).toMatchObject([{ kind: 'closed', reason: 'timeout' }]);
  });
});

test('a failed attempt needs no reward, and has none', async () => {
  let calls = 0;
  const { world, input } = await play({
    rollout: () => {
      calls += 1;
      if (calls === 1) throw new Error('broken');
      return undefined;
    },
  });
  expect((await look(world, input)).waiting).toMatchObject([{ missing: 5, attempts: 5 }]);
  await give(world, input, ALL);
  expect((await look(world, input)).decided).toMatchObject([
    { failed: 1, rewards: expect.toSatisfy((r: number[]) => r.length === 5) },
  ]);
});
