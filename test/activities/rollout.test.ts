import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CancelledFailure } from '@temporalio/common';
import { beforeEach, describe, expect, test } from 'vitest';

import { GroupResult } from '../../core/contract/contract.ts';
import { judgedKey, rolloutsKey } from '../../store/layout.ts';
import { readGroup, readGroups } from '../../store/records/runs/run-reader.ts';
import { decodeRollouts, type AttemptRecord } from '../../store/records/groups/trajectories.ts';
import { say } from '../play/play.ts';
import { call, createEnvironment, failureOf, openWorld, readBytes, rolloutInput, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});

function textsOf({ calls }: AttemptRecord): unknown[] {
  return calls.map(({ request }) => request.messages[0]?.content);
}

test('a group is played, judged and published, and its result says what its files hold', async () => {
  const input = await rolloutInput(world.store);
  const result = await call(world.activities.rollout, input);
  expect(GroupResult.parse(result)).toEqual(result);
  expect(result).toMatchObject({
    step: 2,
    group: 3,
    scenario: 4,
    attempts: 6,
    failed: 0,
    truncated: 0,
    calls: 12,
    use: 'trained',
  });
  expect(result.sampledTokens).toBe(24);
  const [played] = await readGroups(world.store, input);
  expect(played?.rollouts.header).toEqual({
    schema: 1,
    inputsSha256: input.inputsSha256,
    branch: 0,
    step: 2,
    group: 3,
    scenarioId: 's4',
    scenario: 4,
    adapterSha256: input.policy.adapterSha256,
    attempts: 6,
  });
  expect(played?.rollouts.attempts.map(({ reward }) => reward)).toEqual(result.rewards);
  expect(played?.judged).toMatchObject({
    judge: 'agent',
    rewards: result.rewards,
    rolloutsSha256: result.rolloutsSha256,
  });
  expect(result.metrics['evenRate']).toBe(result.rewards.filter((reward) => reward % 2 === 0).length / 6);
});

test('readers see the calls of an attempt as the agent asked them, whatever order they are stored in', async () => {
  const said = ['c', 'a', 'd', 'b'];
  const own = await openWorld({
    async rollout(context) {
      for (const text of said) await say(context, text);
      return 1;
    },
  });
  const input = await rolloutInput(own.store, { attempts: 2 });
  await call(own.activities.rollout, input);
  const asked = (await readGroup(own.store, input))?.rollouts.attempts.map(textsOf);
  expect(asked).toEqual([said, said]);
  const stored = await decodeRollouts((await own.store.read(rolloutsKey(input)))!, 'stored');
  expect(stored.attempts.map(textsOf)).not.toContainEqual(said);
});

test('the same group has the same bytes in another world, under another name', async () => {
  const other = await openWorld();
  const [mine, theirs] = [await rolloutInput(world.store), await rolloutInput(other.store, { run: 'copy' })];
  const results = [await call(world.activities.rollout, mine), await call(other.activities.rollout, theirs)];
  expect(results[1]).toEqual(results[0]);
  expect(readBytes(other, rolloutsKey(theirs))).toBe(readBytes(world, rolloutsKey(mine)));
  expect(readBytes(other, judgedKey(theirs))).toBe(readBytes(world, judgedKey(mine)));
});

test('a group that is published is not played again', async () => {
  const input = await rolloutInput(world.store);
  const first = await call(world.activities.rollout, input);
  expect(await call(world.activities.rollout, input, { attempt: 2 })).toEqual(first);
  expect(world.engine.executed).toHaveLength(12);
});

test('a group that was played and not judged is judged from what was played', async () => {
  const input = await rolloutInput(world.store);
  const first = await call(world.activities.rollout, input);
  rmSync(join(world.root, judgedKey(input)));
  expect(await call(world.activities.rollout, input)).toEqual(first);
  expect(world.engine.executed).toHaveLength(12);
});

test('of two workers that play one group at once, both return the winner’s', async () => {
  let plays = 0;
  const racing = await openWorld({
    async rollout(context) {
      await say(context, 'first');
      plays += 1;
      return { reward: plays, metrics: { plays } };
    },
  });
  const input = await rolloutInput(racing.store);
  const results = await Promise.all([1, 2].map(() => call(racing.activities.rollout, input)));
  expect([plays, results[1]]).toEqual([12, results[0]]);
});

test.each([null, 'openai/gpt-5-mini'])(
  'a group under the same name from other inputs is a StepConflict that names both (judge: %s)',
  async (judge) => {
    const input = { ...(await rolloutInput(world.store)), judge };
    await call(world.activities.rollout, input);
    const failure = await failureOf(call(world.activities.rollout, { ...input, inputsSha256: 'b'.repeat(64) }));
    expect(failure).toMatchObject({ type: 'StepConflict', nonRetryable: true });
    expect(failure.message).toContain(input.inputsSha256);
    expect(failure.message).toContain('b'.repeat(64));
  },
);

test('an outage fails the activity, retryably, and the next try executes only what was not answered', async () => {
  const input = await rolloutInput(world.store);
  const rollout = { ...input.rollout, callRetryBudgetMs: 2000 };
  world.engine.failWhen(() => (world.engine.executed.length >= 7 ? { status: 503 } : null));
  expect(await failureOf(call(world.activities.rollout, { ...input, rollout }))).toMatchObject({
    type: 'EngineFailed',
    nonRetryable: false,
  });
  expect(existsSync(join(world.root, rolloutsKey(input)))).toBe(false);
  world.engine.failWhen(() => null);
  await call(world.activities.rollout, { ...input, rollout });
  expect(new Set(world.engine.executed.map((each) => each.call)).size).toBe(12);
  expect(world.engine.executed).toHaveLength(12);
});

test('a Retry-After longer than a call may wait is obeyed by the next try of the group', async () => {
  const input = await rolloutInput(world.store);
  world.engine.failWhen(({ call: name }) =>
    name.includes('.0/') ? { status: 429, headers: { 'retry-after': '90' } } : null,
  );
  const failure = await failureOf(call(world.activities.rollout, input));
  expect(failure).toMatchObject({ type: 'EngineFailed', nonRetryable: false, nextRetryDelay: 90_000 });
  // The other five attempts were answered, and are not asked for again.
  expect(world.engine.executed).toHaveLength(10);
  world.engine.failWhen(() => null);
  await call(world.activities.rollout, input);
  expect(world.engine.executed).toHaveLength(12);
});

describe('what a group is used for', () => {
  async function useOf(rollout: (attempt: number) => number, changes = {}): Promise<GroupResult> {
    let attempt = 0;
    const own = await openWorld({
      async rollout(context) {
        const mine = attempt++;
        await say(context, 'x');
        return rollout(mine);
      },
    });
    const result = await call(own.activities.rollout, await rolloutInput(own.store, changes));
    return result;
  }

  test('equal rewards carry no signal', async () => {
    expect(await useOf(() => 1)).toMatchObject({ use: 'no-variance', rewards: [1, 1, 1, 1, 1, 1] });
  });

  test('failed attempts are counted and left out, and too many leave too few', async () => {
    const failing = (attempt: number): number => (attempt < 4 ? Number.NaN : attempt);
    expect(await useOf(failing)).toMatchObject({ use: 'trained', failed: 4, rewards: [4, 5] });
    expect(await useOf(failing, { minimumGroupSize: 3 })).toMatchObject({ use: 'too-few-attempts', failed: 4 });
  });

  test('an agent that asks no model has nothing to train', async () => {
    let reward = 0;
    const own = await openWorld({ rollout: () => reward++ });
    const result = await call(own.activities.rollout, await rolloutInput(own.store));
    expect(result).toMatchObject({ use: 'no-sampled-tokens', calls: 0, sampledTokens: 0 });
  });
});

test('an agent that this worker does not have is BadConfig, naming those it has', async () => {
  const failure = await failureOf(call(world.activities.rollout, await rolloutInput(world.store, { agent: 'chess' })));
  expect(failure).toMatchObject({ type: 'BadConfig', nonRetryable: true });
  expect(failure.message).toContain('guess');
});

test('an agent whose code has changed is noted, and plays on', async () => {
  const input = await rolloutInput(world.store, { agentCodeSha256: 'c'.repeat(64) });
  expect((await call(world.activities.rollout, input)).use).toBe('trained');
  expect(world.warnings).toEqual([expect.stringContaining('the agent has changed')]);
});

test('corrupt scenarios are StoreCorrupt', async () => {
  const input = await rolloutInput(world.store);
  writeFileSync(join(world.root, input.scenarios.key), 'other');
  expect(await failureOf(call(world.activities.rollout, input))).toMatchObject({
    type: 'StoreCorrupt',
    nonRetryable: true,
  });
});

test('a cancelled activity ends at once, as cancelled, and publishes nothing', async () => {
  const input = await rolloutInput(world.store);
  world.engine.failWhen(() => ({ hang: true }));
  const environment = createEnvironment();
  const playing = environment.run(world.activities.rollout, input);
  await expect.poll(() => world.engine.received).toBeGreaterThan(0);
  environment.cancel();
  await expect(playing).rejects.toBeInstanceOf(CancelledFailure);
  expect(await readGroup(world.store, input)).toBeNull();
});

test('a worker that shuts down hands the activity back, to be retried', async () => {
  const input = await rolloutInput(world.store);
  world.engine.failWhen(() => ({ hang: true }));
  const environment = createEnvironment();
  const playing = failureOf(environment.run(world.activities.rollout, input));
  await expect.poll(() => world.engine.received).toBeGreaterThan(0);
  environment.cancel('WORKER_SHUTDOWN');
  expect(await playing).toMatchObject({ type: 'WorkerShutdown', nonRetryable: false });
});

test('a heartbeat every second says how far the group is and what it waits for', async () => {
  const { rollout, ...input } = await rolloutInput(world.store);
  await world.engine.stop();
  const environment = createEnvironment();
  const beats: unknown[] = [];
  environment.on('heartbeat', (detail: unknown) => beats.push(detail));
  const playing = environment.run(world.activities.rollout, {
    ...input,
    rollout: { ...rollout, callRetryBudgetMs: 10_000 },
  });
  await expect.poll(() => beats.length).toBeGreaterThan(0);
  await world.engine.start();
  await playing;
  expect(beats[0]).toMatchObject({ step: 2, part: '3', done: 0, of: 6, waiting: { attempts: 6 } });
  expect(beats[0]).toMatchObject({ waiting: { since: expect.any(String), reason: expect.stringContaining('ECONN') } });
});
