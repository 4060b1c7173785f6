import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { createJudgeActivities } from '../../../activities/judge.ts';
import { createJudgeGivenActivities } from '../../../activities/judge-given.ts';
import type { GroupResult, OpenGroup } from '../../../core/contract/contract.ts';
import { groupName, planGivenJudging, type Over } from '../../../core/plan/given.ts';
import type { RunPosition } from '../../../core/plan/step.ts';
import {
  chooseKnown,
  isFresh,
  planJudging,
  planNext,
  planTopUp,
  planTraining,
  withPlayed,
  withResults,
} from '../../../core/plan/window.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { judgedKey, manifestKey, stepVerdictKey } from '../../../store/layout.ts';
import { listAwaited } from '../../../store/records/rewards/awaited-groups.ts';
import { copyRun } from '../../../store/records/copy/copy-run.ts';
import { openGiver } from '../../../store/records/rewards/give-reward.ts';
import { addGiven } from '../../../store/records/rewards/given-rewards.ts';
import { summariseUnjudged } from '../../../store/records/groups/group-result.ts';
import { openBranch } from '../../../store/records/runs/lineage.ts';
import { findPosition } from '../../../store/records/runs/positions.ts';
import { planPrune } from '../../../store/records/retention/prune.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { call } from '../../activities/world.ts';
import { makeRun, type MadeRun, type TakeWindowStep } from './made-run.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

/** A run of four steps, made once: each test changes a copy. */
let made: MadeRun;
let root: string;
let store: FileStore;
const openStore = (folder: string): void => {
  root = folder;
  store = new FileStore(root);
};
const four = temporaryFolder();
beforeAll(async () => {
  openStore(four);
  made = await makeWindow(4, [['1.1', '1.3', '1.2'], ['2.0'], ['3.1', '3.2'], ['3.0', '4.0']]);
});
beforeEach(() => {
  openStore(temporaryFolder());
  cpSync(four, root, { recursive: true });
});

const place = (step: number, branch = 0) => ({ run: 'demo', branch, step });
const logger = { info: () => undefined, warn: () => undefined };
const pauses = { longestPauseMs: () => 0 };
const openActivities = () => ({
  ...createJudgeGivenActivities({ store, logger, pauses }),
  ...createJudgeActivities({ store, logger, pauses }),
});

/** Every attempt of a group gets its number as reward. */
async function reward(name: string): Promise<void> {
  const [step = 0, group = 0] = name.split('.').map(Number);
  const row = { schema: 1, kind: 'reward', by: null, note: null, at: new Date().toISOString(), key: null } as const;
  for (const attempt of [0, 1]) await addGiven(store, { ...place(step), group }, { ...row, attempt, reward: attempt });
}

/** Takes a step like the workflow; these groups get their rewards while it waits. */
function takingSteps(rewards: readonly string[][]): TakeWindowStep {
  return async (_, config, start, { play, commit }) => {
    const { judgeGiven, judge } = openActivities();
    const look = async (position: RunPosition, isMeant: (group: OpenGroup) => boolean, over: Over | null) => {
      const waiting = position.open.filter((group) => group.result.use === 'unjudged' && isMeant(group));
      const groups = waiting.map(({ branch, inputsSha256, result: { step, group, scenario } }) => {
        return { branch, step, group, scenario, inputsSha256 };
      });
      if (groups.length === 0) return position;
      const input = planGivenJudging(config, groups[0]!.branch, groups, () => over);
      return withResults(position, (await call(judgeGiven, input)).decided);
    };
    const before = await look(start, (group) => !isFresh(config, group), 'stale');
    const dealt = planTopUp(config, before);
    const played: GroupResult[] = [];
    for (const group of dealt) {
      const { rollouts, sha256 } = await play(group);
      played.push(summariseUnjudged(group, rollouts, sha256));
    }
    for (const name of rewards[start.step] ?? []) await reward(name);
    const window = await look(withPlayed(before, dealt, played), (group) => isFresh(config, group), null);
    const chosen = (await call(judge, planJudging(config, window))).groups ?? chooseKnown(config, window);
    const checkpoint = await commit(planTraining(config, window, chosen));
    return planNext(config, withResults(window, chosen), chosen, checkpoint);
  };
}

function makeWindow(steps: number, rewards: string[][]): Promise<MadeRun> {
  const options = { judge: 'external', external: {}, groupsAhead: 2, maxRewardStaleness: 1 };
  return makeRun(store, { steps, window: { options, take: takingSteps(rewards) } });
}
const problems = async (of = store) => (await verifyRun(of, 'demo')).findings.problems.map(({ object }) => object);
const namesOf = (open: OpenGroup[] = []) => open.map(({ result }) => groupName(result));

describe('a run with open groups', () => {
  test('is what its plan says, and continues from its store where it stood', async () => {
    const { positions } = made;
    // Step 1 takes two of three complete groups, step 2 the third; 1.0 is too old for step 3.
    expect(positions.map(({ open }) => namesOf(open))).toEqual([
      [],
      ['1.0', '1.3'],
      ['1.0', '2.1'],
      ['2.1', '3.0'],
      ['4.1', '4.2'],
    ]);
    expect(await problems()).toEqual([]);
    const found = await findPosition(store, 'demo');
    expect(found).toMatchObject({ open: positions[4]!.open, dealt: positions[4]!.dealt, step: 4 });
    // Killed while step 4 trained: its choice is in the store, and its window is that of its first attempt.
    rmSync(join(root, manifestKey(place(4))));
    const killed = await findPosition(store, 'demo');
    expect(killed).toMatchObject({ step: 3, dealt: positions[3]!.dealt });
    expect(namesOf(killed.open)).toEqual(['2.1', '3.0']);
  });

  test('chooses once: asked again when more is complete, it gets the recorded choice', async () => {
    rmSync(root, { recursive: true });
    const { config, positions } = await makeWindow(1, [['1.1', '1.3']]);
    const before = positions[0]!;
    const dealt = planTopUp(config, before);
    const found = await findPosition(store, 'demo');
    expect(namesOf(found.open)).toEqual(['1.0', '1.2']);
    for (const name of ['1.0', '1.2']) await reward(name);
    const { judgeGiven, judge } = openActivities();
    const { decided } = await call(
      judgeGiven,
      planGivenJudging(config, 0, dealt, () => null),
    );
    expect(decided.map(groupName)).toEqual(['1.0', '1.1', '1.2', '1.3']);
    const again = await call(judge, planJudging(config, withPlayed(before, dealt, decided)));
    expect(again.groups?.map(groupName)).toEqual(['1.1', '1.3']);
    const other = withPlayed(before, dealt.slice(1), decided.slice(1));
    await expect(call(judge, planJudging(config, other))).rejects.toThrow(/verdict on step 1/);
  });

  test('gets its groups back when it goes back, and takes rewards for them', async () => {
    const { positions } = made;
    await openBranch(store, 'demo', { requestId: 'back', step: 1 });
    const found = await findPosition(store, 'demo');
    expect(found.dealt).toBe(positions[1]!.dealt);
    expect(
      found.open.map(({ result, branch: at, staleness }) => [groupName(result), at, staleness, result.use]),
    ).toEqual([
      // It was closed with what it had when it was too old: the run finds that when it looks.
      ['1.0', 0, 1, 'unjudged'],
      ['1.3', 0, 1, 'trained'],
    ]);
    const giver = await openGiver(store, 'demo');
    const late = await giver.give({ attempt: '0.1.0.0', reward: 1 });
    expect(late).toMatchObject({
      outcome: 'refused',
      message: expect.stringMatching(/group 0 of step 1 .*was left out/),
    });
    // Dealt by a step that was given up.
    expect(await giver.give({ attempt: '0.3.1.0', reward: 1 })).toMatchObject({ reason: 'abandoned-branch' });
  });

  test('lists what waits in its window, and keeps the policies that sampled it', async () => {
    expect((await listAwaited(store, 'demo')).map((group) => groupName(group.place))).toEqual(['4.1', '4.2']);
    const plan = await planPrune(store, 'demo', { keepLast: 1, keepBest: [], keepEvery: null });
    expect(plan.kept.map(({ checkpoint }) => checkpoint.step)).toEqual([0, 2, 3, 4]);
  });

  test('is copied with its ledgers, and found intact in the copy', async () => {
    const copy = new FileStore(join(root, 'copy'));
    const signal = new AbortController().signal;
    await copyRun(store, copy, 'demo', { signal, onStep: () => undefined, withPruned: false, isThorough: false });
    expect(await problems(copy)).toEqual([]);
    expect((await findPosition(copy, 'demo')).open).toEqual((await findPosition(store, 'demo')).open);
  });

  test.each([
    ['a verdict that is gone', stepVerdictKey(place(2)), null],
    ['a group that a later step trained and that is gone', judgedKey({ ...place(1), group: 3 }), null],
    ['a group that a later step trained and that has changed', judgedKey({ ...place(1), group: 3 }), '{}'],
  ])('%s is found', async (_, key, content) => {
    if (content === null) rmSync(join(root, key));
    else writeFileSync(join(root, key), content);
    expect(await problems()).toContain(key);
  });
});
