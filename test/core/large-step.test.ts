import { describe, expect, test } from 'vitest';

import { PlayGroupsInput, TrainInput, type GroupResult, type RolloutInput } from '../../core/contract.ts';
import { hashOf } from '../../core/hashes.ts';
import { isLargeStep } from '../../core/is-large-step.ts';
import { planBundles, withoutLongList } from '../../core/large-step.ts';
import {
  dealMissing,
  hashJudging,
  planGroups,
  planJudging,
  planTraining,
  positionAt,
  toGroupRef,
  withInputsHash,
} from '../../core/plan-step.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';

const SMALL = defaultRunConfig({ run: 'a', agent: 'agent', baseModel: 'pocket', groupsPerStep: 2000 });
const LARGE = { ...SMALL, groupsPerStep: 2001 };
const CHECKPOINT = { run: 'a', branch: 0, step: 4, manifestSha256: hashOf('manifest'), adapterSha256: hashOf('a') };
const POSITION = positionAt({
  branch: 0,
  prepared: {
    scenarios: { key: `blobs/${hashOf('scenarios')}`, sha256: hashOf('scenarios'), bytes: 10 },
    trainScenarios: 8,
    evalScenarios: 2,
    heldOut: true,
    agentCodeSha256: hashOf('code'),
  },
  step: 4,
  checkpoint: CHECKPOINT,
  dealt: 12,
  emptySteps: 0,
});

function resultOf({ step, group, scenario, attempts }: RolloutInput): GroupResult {
  const [rolloutsSha256, judgedSha256] = [hashOf(['rollouts', group]), hashOf(['judged', group])];
  const counts = { attempts, failed: 0, truncated: 0, calls: 4, sampledTokens: 40 };
  const use = group % 3 === 0 ? 'no-variance' : 'trained';
  return { step, group, scenario, rolloutsSha256, judgedSha256, ...counts, rewards: [], metrics: {}, use };
}

const played = planGroups(LARGE, POSITION).map(resultOf);

test('up to 2,000 groups are handed out one by one', () => {
  expect([SMALL, LARGE].map(isLargeStep)).toEqual([false, true]);
});

describe('the activities of a large step', () => {
  test('play every group of its plan once, in plan order, as if it were handed out by itself', () => {
    const bundles = planBundles(dealMissing(LARGE, POSITION, []));
    expect(PlayGroupsInput.safeParse(bundles[0]).error).toBeUndefined();
    expect(bundles).toHaveLength(401);
    const handed = bundles.flatMap(({ groups, ...shared }) => groups.map((dealt) => ({ ...shared, ...dealt })));
    expect(handed.map(withInputsHash)).toEqual(planGroups(LARGE, POSITION));
  });

  test.each([
    [10_000, 500, 20],
    [10_001, 477, 21],
    [600, 300, 2],
    [500, 500, 1],
    [3, 3, 1],
    [0, 0, undefined],
  ])('are at most 500: %i groups are played by %i activities', (groups, activities, first) => {
    const plan = dealMissing({ ...LARGE, groupsPerStep: groups }, POSITION, []);
    const bundles = planBundles(plan);
    expect(bundles).toHaveLength(activities);
    expect(bundles[0]?.groups.length).toBe(first);
    expect(bundles.flatMap((bundle) => bundle.groups)).toHaveLength(groups);
  });
});

describe('the identity of a step', () => {
  test('does not depend on how the groups that are judged are told', () => {
    const judging = planJudging(LARGE, POSITION, played);
    expect(judging).toMatchObject({ groups: [], played: 2001 });
    const groups = played.map(toGroupRef);
    expect(judging.inputsSha256).toBe(hashJudging({ ...judging, groups }));
    expect(judging.inputsSha256).toBe(planJudging(SMALL, POSITION, played).inputsSha256);
    expect(planJudging(SMALL, POSITION, played)).toMatchObject({ groups, resultsSha256: hashOf(played) });
  });

  test('does not depend on how the groups that are trained are told', () => {
    const training = planTraining(LARGE, POSITION, played)!;
    const sent = withoutLongList(LARGE, training);
    expect(TrainInput.safeParse(sent).error).toBeUndefined();
    expect(sent).toEqual({ ...training, groups: [], groupList: { count: 1334, sha256: hashOf(training.groups) } });
    expect(training.inputsSha256).toBe(planTraining(SMALL, POSITION, played)!.inputsSha256);
    expect(withoutLongList(SMALL, training)).toBe(training);
  });
});
