/** `judge`: the verdict on a step, from the files of its groups. */
import { join } from 'node:path';
import { readFileSync, writeFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';

import type { GroupResult, JudgeInput } from '../../core/contract/contract.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { toGroupRef } from '../../core/plan/step.ts';
import { judgedKey, stepVerdictKey } from '../../store/layout.ts';
import { readStepVerdict } from '../../store/records/groups/step-verdict.ts';
import { call, openWorld, readBytes, rolloutInput, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});

const STEP = { run: 'demo', branch: 0, step: 2 };

async function play(...groups: number[]): Promise<GroupResult[]> {
  const played: GroupResult[] = [];
  for (const group of groups)
    played.push(await call(world.activities.rollout, await rolloutInput(world.store, { group, scenario: group + 1 })));
  return played;
}

function judging(played: readonly GroupResult[], changes: Partial<JudgeInput> = {}): JudgeInput {
  const window = played.map(toGroupRef);
  const rules = { truncated: 'mask', overlongBuffer: 0, overlongPenalty: 1, minimumGroupSize: 2 } as const;
  const hashes = { inputsSha256: hashOf(window), resultsSha256: hashOf('other') };
  return { ...STEP, most: 2, window, ...rules, ...hashes, ...changes };
}

test('what a step trains is decided from its files, and stands in the store before it is trained', async () => {
  const played = await play(0, 1);
  const { groups } = await call(world.activities.judge, judging(played));
  expect(groups).toEqual(played);
  const verdict = await readStepVerdict(world.store, STEP);
  expect(verdict).toEqual({
    schema: 1,
    inputsSha256: judging(played).inputsSha256,
    groups: played.map((group) => ({ ...toGroupRef(group), use: group.use, rewards: group.rewards })),
  });
});

test('results that the workflow has already are not told again, and others are', async () => {
  const played = await play(0, 1);
  const { groups: told } = await call(world.activities.judge, judging(played, { resultsSha256: hashOf(played) }));
  expect(told).toBeNull();
  const others = played.map((group) => ({ ...group, use: 'unjudged' }));
  const { groups } = await call(world.activities.judge, judging(played, { resultsSha256: hashOf(others) }));
  expect(groups).toEqual(played);
});

test('judged again it is the same; with other groups it is a conflict', async () => {
  const played = await play(0, 1);
  const first = await call(world.activities.judge, judging(played));
  const bytes = readBytes(world, stepVerdictKey(STEP));
  expect(await call(world.activities.judge, judging(played), { attempt: 2 })).toEqual(first);
  expect(readBytes(world, stepVerdictKey(STEP))).toBe(bytes);
  await expect(call(world.activities.judge, judging(played.slice(1)))).rejects.toMatchObject({
    type: 'StepConflict',
    nonRetryable: true,
  });
});

test('a file that is not the one which was written is found before anything is trained of it', async () => {
  const played = await play(0);
  const path = join(world.root, judgedKey({ ...STEP, group: 0 }));
  writeFileSync(path, readFileSync(path, 'utf8').replace('1', '0'));
  await expect(call(world.activities.judge, judging(played))).rejects.toMatchObject({
    type: 'StoreCorrupt',
    message: expect.stringContaining('groups/0.judged.json must have the hash') as string,
  });
  expect(await readStepVerdict(world.store, STEP)).toBeNull();
});
