/** `playGroups`: several groups of a large step by one activity. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CancelledFailure } from '@temporalio/common';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { PlayGroupsResult, type PlayGroupsInput, type RolloutInput } from '../../core/contract.ts';
import { planBundles } from '../../core/large-step.ts';
import { withInputsHash } from '../../core/plan-step.ts';
import { createRuler } from '../../sdk/ruler/create-ruler.ts';
import { judgedKey, rolloutsKey } from '../../store/layout.ts';
import { ENV } from '../play/judge/judging.ts';
import { JUDGE_KEY_VARIABLE, startScriptedJudge, type ScriptedJudge } from '../play/judge/scripted-judge.ts';
import { call, createEnvironment, openWorld, readBytes, rolloutInput, type World } from './world.ts';

const GROUPS = [0, 1, 2, 3];
/** Two for each attempt. */
const CALLS = 12;

let scripted: ScriptedJudge;
const worlds: World[] = [];
beforeEach(async () => {
  scripted = await startScriptedJudge();
  scripted.scoreBy((lines) => Number((lines.at(-1) as { content: string }).content) / 10);
});
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
  await scripted.close();
});

async function open(...world: Parameters<typeof openWorld>): Promise<World> {
  const opened = await openWorld(...world);
  worlds.push(opened);
  return opened;
}

function openJudged(): Promise<World> {
  const judge = { baseUrl: scripted.url, model: 'scripted', keyVariable: JUDGE_KEY_VARIABLE };
  return open({ reward: createRuler({ judge }) }, { env: ENV });
}

async function planned(world: World, changes: Partial<RolloutInput> = {}) {
  const { inputsSha256: _, ...dealt } = await rolloutInput(world.store, changes);
  const plan = GROUPS.map((group) => ({ ...dealt, group, scenario: 10 + group }));
  const { groups: __, ...shared } = planBundles(plan)[0]!;
  const bundle: PlayGroupsInput = {
    ...shared,
    groups: plan.map(({ group, scenario, seed }) => ({ group, scenario, seed })),
  };
  return { bundle, plan: plan.map(withInputsHash) };
}

const filesOf = (world: World, plan: RolloutInput[]): string[] =>
  plan.flatMap((group) => [rolloutsKey(group), judgedKey(group)]).map((key) => readBytes(world, key));

test('several groups are played and judged as each would be by itself: the same files and results', async () => {
  const [together, apart] = [await open(), await open()];
  const { bundle, plan } = await planned(together);
  const result = await call(together.activities.playGroups, bundle);
  expect(PlayGroupsResult.parse(result)).toEqual(result);
  expect(result).toMatchObject({ spent: null, seconds: 0 });
  await planned(apart);
  for (const [index, group] of plan.entries())
    expect(await call(apart.activities.rollout, group)).toEqual(result.groups[index]);
  expect(filesOf(together, plan)).toEqual(filesOf(apart, plan));
});

test("the run's judge judges each of them, and what that cost is added up", async () => {
  const world = await openJudged();
  const { bundle, plan } = await planned(world, { judge: 'endpoint/scripted' });
  const result = await call(world.activities.playGroups, bundle);
  expect(result.spent).toMatchObject({ calls: GROUPS.length, cached: 0 });
  expect(result.seconds).toBeGreaterThan(0);
  for (const [index, group] of plan.entries()) {
    const { group: judged, spent } = await call(world.activities.judgeGroup, { group });
    expect(judged).toEqual(result.groups[index]);
    expect(spent.calls).toBe(1);
  }
});

test('a retry goes on where its predecessor stopped: nothing that was answered is asked for again', async () => {
  const world = await openJudged();
  const { bundle, plan } = await planned(world, { judge: 'endpoint/scripted' });
  const rollout = { ...bundle.rollout, callRetryBudgetMs: 1000 };
  const outage = 2 * CALLS + 7;
  world.engine.failWhen(() => (world.engine.executed.length >= outage ? { status: 503 } : null));
  await expect(call(world.activities.playGroups, { ...bundle, rollout })).rejects.toMatchObject({
    type: 'EngineFailed',
    nonRetryable: false,
  });
  expect(plan.map((group) => existsSync(join(world.root, rolloutsKey(group))))).toEqual([true, true, false, false]);
  world.engine.failWhen(() => null);
  const { groups, spent } = await call(world.activities.playGroups, { ...bundle, rollout }, { attempt: 2 });
  expect(groups.map(({ group }) => group)).toEqual(GROUPS);
  expect(world.engine.executed).toHaveLength(GROUPS.length * CALLS);
  // The first try paid for these calls.
  expect(spent?.calls).toBe(GROUPS.length);
});

test('people see how many of the groups are done; a cancelled activity begins no further one', async () => {
  // Each group takes about as long as one heartbeat is from the next, so that the last group is never played before one.
  const world = await open({}, {}, { delayMs: 1000 });
  const { bundle, plan } = await planned(world);
  const environment = createEnvironment();
  const beats: { groups?: object }[] = [];
  environment.on('heartbeat', (beat: { groups?: object } | null) => {
    if (beat === null) return;
    beats.push(beat);
    environment.cancel();
  });
  await expect(environment.run(world.activities.playGroups, bundle)).rejects.toBeInstanceOf(CancelledFailure);
  expect(beats[0]).toMatchObject({ step: 2, groups: { done: expect.any(Number) as number, of: GROUPS.length } });
  expect(existsSync(join(world.root, rolloutsKey(plan.at(-1)!)))).toBe(false);
});
