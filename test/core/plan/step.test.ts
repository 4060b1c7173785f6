import { describe, expect, test } from 'vitest';

import {
  EvaluateInput,
  InitialiseInput,
  JudgeInput,
  RolloutInput,
  TrainInput,
  type Checkpoint,
  type GroupResult,
  type RunConfig,
} from '../../../core/contract/contract.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { isEvaluationDue, planEvaluation } from '../../../core/plan/evaluation.ts';
import {
  planInitialise,
  policiesAtStart,
  positionAt,
  trainedGroups,
  type PlayPosition,
  type RunPosition,
} from '../../../core/plan/step.ts';
import {
  chooseKnown,
  hashJudging,
  planAhead,
  planJudging,
  planNext,
  planTopUp,
  planTraining,
  withPlayed,
} from '../../../core/plan/window.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';

const LORA = { rank: 16, alpha: 32, targetModules: null, dropout: 0, rslora: false, dora: false };
const CONFIG = defaultRunConfig({
  run: 'a',
  agent: 'agent',
  baseModel: 'pocket',
  groupsPerStep: 3,
  groupSize: 4,
});
const BLOB = { key: `blobs/${hashOf('scenarios')}`, sha256: hashOf('scenarios'), bytes: 10 };

function positionOf(run: string, change: Partial<RunPosition> = {}): RunPosition {
  const prepared = {
    scenarios: BLOB,
    trainScenarios: 8,
    evalScenarios: 2,
    heldOut: true,
    agentCodeSha256: hashOf('code'),
  };
  const checkpoint = { run, branch: 0, step: 4, manifestSha256: hashOf('manifest'), adapterSha256: hashOf('adapter') };
  return { ...positionAt({ branch: 0, prepared, step: 4, checkpoint, dealt: 12, emptySteps: 0 }), ...change };
}
const POSITION = positionOf('a');

function resultOf({ step, group, scenario, attempts }: RolloutInput, use: GroupResult['use']): GroupResult {
  const [rolloutsSha256, judgedSha256] = [hashOf(['rollouts', group]), hashOf(['judged', group])];
  const counts = { attempts, failed: 0, truncated: 0, calls: 4, sampledTokens: 40 };
  return { step, group, scenario, rolloutsSha256, judgedSha256, ...counts, rewards: [], metrics: {}, use };
}

/** The step's groups are dealt and played. */
function play<Position extends PlayPosition>(
  position: Position,
  use: GroupResult['use'][] = [],
  config = CONFIG,
): Position {
  const dealt = planTopUp(config, position);
  const played = dealt.map((group, index) => resultOf(group, use[index] ?? 'trained'));
  return withPlayed(position, dealt, played);
}
const train = (position: RunPosition, config = CONFIG) => planTraining(config, position, chooseKnown(config, position));
const next = (window: RunPosition, checkpoint: Checkpoint | null) =>
  planNext(CONFIG, window, chooseKnown(CONFIG, window), checkpoint);

const PLAYED = play(POSITION);
const UNEVEN = play(POSITION, ['trained', 'no-variance']);

const OTHER = { ...POSITION.parent, manifestSha256: hashOf('x') };

/** Hashes of the four kinds of write-once objects. */
function hashes(config: RunConfig, position: RunPosition) {
  return {
    group: planTopUp(config, position)[0]?.inputsSha256,
    step: train(play(position, [], config), config)?.inputsSha256,
    eval: planEvaluation(config, position).inputsSha256,
    initial: planInitialise(config, position.branch).inputsSha256,
  };
}

test('plans are what the wire takes', () => {
  expect(RolloutInput.safeParse(planTopUp(CONFIG, POSITION)[0]).error).toBeUndefined();
  expect(TrainInput.safeParse(train(PLAYED)).error).toBeUndefined();
  expect(EvaluateInput.safeParse(planEvaluation(CONFIG, POSITION)).error).toBeUndefined();
  expect(InitialiseInput.safeParse(planInitialise(CONFIG, 0)).error).toBeUndefined();
});

test('what long answers cost is planned with the verdict, and changes nothing about what is played', () => {
  const costs = { overlongBuffer: 64, overlongPenalty: 2 };
  const shaped = { ...CONFIG, train: { ...CONFIG.train, ...costs } };
  expect(planJudging(shaped, PLAYED)).toMatchObject(costs);
  expect(planTopUp(shaped, POSITION)[0]).toMatchObject(costs);
  expect(JudgeInput.safeParse(planJudging(shaped, PLAYED)).error).toBeUndefined();
  expect(RolloutInput.safeParse(planTopUp(shaped, POSITION)[0]).error).toBeUndefined();
  expect(hashes(shaped, POSITION)).toMatchObject({ group: hashes(CONFIG, POSITION).group });
  expect(planJudging(shaped, PLAYED).inputsSha256).not.toBe(planJudging(CONFIG, PLAYED).inputsSha256);
  const { inputsSha256: _, ...judging } = planJudging(CONFIG, PLAYED);
  const { branch, step, most, window, minimumGroupSize, truncated } = judging;
  const places = window.map(({ judgedSha256: _judged, ...place }) => place);
  expect(hashJudging(judging)).toBe(hashOf({ branch, step, most, window: places, minimumGroupSize, truncated }));
});

test('the policy that samples and the parent that is trained are different fields', () => {
  const policy = { ...POSITION.policy, step: 3, adapterSha256: hashOf('older') };
  const position = { ...POSITION, policy };
  expect(planTopUp(CONFIG, position).map((input) => input.policy)).toEqual([policy, policy, policy]);
  expect(train(play(position))?.parent).toEqual(POSITION.parent);
  expect(planEvaluation(CONFIG, position).policy).toEqual(POSITION.parent);
});

test('a step plays its number of groups by the checkpoint at hand', () => {
  const groups = planTopUp(CONFIG, POSITION);
  expect(groups.map(({ step, group, attempts, policy }) => [step, group, attempts, policy])).toEqual(
    [0, 1, 2].map((group) => [5, group, 4, POSITION.policy]),
  );
});

test('a scenario that a small set deals twice to one step is played by other seeds', () => {
  const tiny = positionOf('a', { prepared: { ...POSITION.prepared, trainScenarios: 1 } });
  const seeds = planTopUp(CONFIG, tiny).map(({ seed }) => seed);
  expect(new Set(seeds).size).toBe(3);
});

describe('replacements', () => {
  test('are as many as the groups without signal and deal on', () => {
    const fresh = planTopUp(CONFIG, UNEVEN);
    const whole = planTopUp({ ...CONFIG, groupsPerStep: 4 }, POSITION);
    expect(fresh).toEqual(whole.slice(3));
  });

  test('are none once the step is full', () => {
    expect(planTopUp(CONFIG, PLAYED)).toEqual([]);
  });

  test('are counted in the deal of the next step', () => {
    expect(next(play(UNEVEN), POSITION.parent).dealt).toBe(16);
  });
});

describe('with maxStaleness', () => {
  const checkpointAfter = (step: number) => ({ ...POSITION.parent, step, manifestSha256: hashOf(['manifest', step]) });
  /** After each step from 0 on, those that are named having trained nothing. */
  const walk = (maxStaleness: number, steps: number, empty: number[] = []) => {
    const first = checkpointAfter(0);
    const policies = policiesAtStart({ maxStaleness }, first);
    const start = {
      ...POSITION,
      step: 0,
      checkpoint: first,
      policies,
      upcoming: undefined,
      policy: first,
      parent: first,
    };
    const positions: RunPosition[] = [positionAt(start)];
    for (let step = 1; step <= steps; step++)
      positions.push(next(play(positions.at(-1)!), empty.includes(step) ? null : checkpointAfter(step)));
    return positions;
  };

  test.each([
    [0, [0, 1, 2, 3, 4, 5]],
    [1, [0, 0, 1, 2, 3, 4]],
    [2, [0, 0, 0, 1, 2, 3]],
  ])('%i, each step samples from the checkpoint so many steps before its parent', (maxStaleness, sampled) => {
    const positions = walk(maxStaleness, 5);
    expect(positions.map(({ policy }) => policy.step)).toEqual(sampled);
    expect(positions.map(({ parent }) => parent.step)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(planTopUp(CONFIG, positions[5]!)[0]?.policy.step).toBe(sampled[5]);
  });

  test('a step names its sampler, and how many updates it is behind; what its parent sampled names none', () => {
    const positions = walk(2, 5, [3]);
    const trainings = positions.map((position) => train(play(position)));
    expect(trainings.map((training) => training?.samplers?.[0]?.step)).toEqual([undefined, 0, 0, 1, 2, 2]);
    expect(trainings.map((training) => training?.samplers?.[0]?.staleness)).toEqual([undefined, 1, 2, 1, 1, 2]);
    for (const training of trainings) expect(TrainInput.safeParse(training).error).toBeUndefined();
    const [, , stale] = positions;
    const other = { ...stale!, policy: { ...stale!.policy, adapterSha256: hashOf('other') } };
    expect(train(play(other))?.inputsSha256).not.toBe(trainings[2]?.inputsSha256);
  });

  test('what is played ahead is dealt, counted and planned as what is played in its turn', () => {
    const [first, second, third] = walk(1, 2) as [RunPosition, RunPosition, RunPosition];
    const window = play(first, ['trained', 'no-variance']);
    const ahead = planAhead(window, chooseKnown(CONFIG, window), first.policy);
    expect(planTopUp(CONFIG, ahead)).toEqual(planTopUp(CONFIG, second));
    const still = play(ahead, ['no-variance', 'no-variance', 'no-variance']);
    expect(planAhead(still, chooseKnown(CONFIG, still), third.policy)).toMatchObject({
      step: 2,
      dealt: third.dealt,
      emptySteps: 1,
    });
  });
});

describe('training', () => {
  test('takes the groups with signal in plan order, however they came back', () => {
    const chosen = chooseKnown(CONFIG, UNEVEN);
    const training = planTraining(CONFIG, UNEVEN, chosen.toReversed());
    expect(training?.groups.map(({ group }) => group)).toEqual([0, 2]);
    expect(training).toEqual(planTraining(CONFIG, UNEVEN, chosen));
    expect(trainedGroups(chosen)).toHaveLength(2);
  });

  test('has nothing to do where no group carries a signal', () => {
    expect(planTraining(CONFIG, POSITION, [])).toBeNull();
  });

  test('the policy stays after an empty step, and empty steps in a row are counted', () => {
    const empty = next(UNEVEN, null);
    expect(empty).toMatchObject({ step: 5, policy: POSITION.policy, parent: POSITION.parent, emptySteps: 1 });
    expect(next(play(empty), null).emptySteps).toBe(2);
    const committed = { ...POSITION.parent, step: 6 };
    expect(next(play(empty), committed)).toMatchObject({
      step: 6,
      policy: committed,
      parent: committed,
      emptySteps: 0,
    });
  });
});

describe('hashes of inputs', () => {
  const base = hashes(CONFIG, POSITION);

  test('know no names: a copy of a run under another name has the same', () => {
    const copy = { ...CONFIG, run: 'b' };
    expect(hashes(copy, positionOf('b'))).toEqual(base);
  });

  test("leave out the agent's code, so that a changed agent does not brick a run", () => {
    const prepared = { ...POSITION.prepared, agentCodeSha256: hashOf('other code') };
    expect(hashes(CONFIG, positionOf('a', { prepared }))).toEqual(base);
  });

  test.each<[string, Partial<RunConfig>, Partial<RunPosition>, (keyof typeof base)[]]>([
    ['another seed', { seed: 2 }, {}, ['group', 'step', 'eval', 'initial']],
    ['another branch', {}, { branch: 1 }, ['group', 'step', 'eval', 'initial']],
    ['another temperature', { rollout: { ...CONFIG.rollout, temperature: 0.5 } }, {}, ['group', 'eval']],
    ['another learning rate', { learningRate: 1 }, {}, ['step']],
    ['another group size', { groupSize: 5 }, {}, ['group']],
    ['another rank', { train: { ...CONFIG.train, lora: { ...LORA, rank: 2 } } }, {}, ['step', 'initial']],
    ['no adapter', { train: { ...CONFIG.train, lora: null } }, {}, ['step', 'initial']],
    ['another policy', {}, { policy: OTHER }, ['group', 'step']],
    ['another parent', {}, { parent: OTHER }, ['step', 'eval']],
  ])('%s changes those that depend on it alone', (_, config, position, changed) => {
    const now = hashes({ ...CONFIG, ...config }, positionOf('a', position));
    const differing = (Object.keys(base) as (keyof typeof base)[]).filter((key) => now[key] !== base[key]);
    expect(differing).toEqual(changed);
  });
});

test('an evaluation is due every n steps and after the last; with 0 only after the last', () => {
  const due = [0, 2, 5].map((evalEvery) =>
    [1, 2, 3, 4, 5].filter((step) => isEvaluationDue({ ...CONFIG, steps: 5, evalEvery }, step)),
  );
  expect(due).toEqual([[5], [2, 4, 5], [5]]);
});

/** A run in flight is planned on by the next version: other numbers here would be StepConflict there. */
test('plans are the same in every version', () => {
  const groups = planTopUp(CONFIG, POSITION);
  expect(groups.map(({ scenario, seed }) => [scenario, seed])).toEqual(
    [0, 3, 1].map((scenario) => [scenario, 38958526005301]),
  );
  const inputs = {
    groups: groups.map(({ inputsSha256 }) => inputsSha256.slice(0, 12)),
    step: train(PLAYED)?.inputsSha256.slice(0, 12),
    eval: planEvaluation(CONFIG, POSITION).inputsSha256.slice(0, 12),
    initial: planInitialise(CONFIG, 0).inputsSha256.slice(0, 12),
  };
  expect(inputs).toMatchInlineSnapshot(`
    {
      "eval": "bf76cb2ac819",
      "groups": [
        "ab2e71e89236",
        "cf40f4c977c0",
        "11f1dd46676b",
      ],
      "initial": "3fd8b304d106",
      "step": "4e59e634a71b",
    }
  `);
});

test('the chat template is named where a run begins, and changes nothing of what is made', () => {
  const rollout = { ...CONFIG.rollout, chatTemplateSha256: 'd'.repeat(64) };
  const plan = planInitialise({ ...CONFIG, rollout }, 0);
  expect(plan).toEqual({ ...planInitialise(CONFIG, 0), chatTemplateSha256: rollout.chatTemplateSha256 });
  expect(InitialiseInput.safeParse(plan).error).toBeUndefined();
});

test('8-bit moments are named where a run begins, and change nothing of what is made there', () => {
  const optimizer = { ...CONFIG.train.optimizer, kind: 'adamw_8bit' as const };
  const plan = planInitialise({ ...CONFIG, train: { ...CONFIG.train, optimizer } }, 0);
  expect(plan).toEqual({ ...planInitialise(CONFIG, 0), optimizerKind: 'adamw_8bit' });
  expect(InitialiseInput.safeParse(plan).error).toBeUndefined();
});

test('an adapter from elsewhere is an input of the first checkpoint', () => {
  const refs = ['e', 'f'].map((digit) => ({ key: `blobs/${digit.repeat(64)}`, sha256: digit.repeat(64), bytes: 1 }));
  const startAdapter = { weights: refs[0]!, config: refs[1]! };
  const plan = planInitialise({ ...CONFIG, startAdapter }, 0);
  expect(InitialiseInput.safeParse(plan).error).toBeUndefined();
  expect(plan.startAdapter).toEqual(startAdapter);
  expect(plan.inputsSha256).not.toBe(planInitialise(CONFIG, 0).inputsSha256);
});

describe('a fork', () => {
  const { baseModel, seed } = CONFIG;
  const fields = { branch: 0, baseModel, seed, lora: { rank: 16, alpha: 32, targetModules: null } };

  test('is no change for a run without a parent', () => {
    expect(planInitialise(CONFIG, 0)).toMatchObject({ parent: null, inputsSha256: hashOf(fields) });
  });

  test('begins with its parent, which its hash knows by bytes and place and not by name', () => {
    const [parent, renamed, other] = [POSITION.parent, positionOf('b').parent, { ...POSITION.parent, step: 3 }];
    const plan = planInitialise({ ...CONFIG, parent }, 0);
    expect(InitialiseInput.safeParse(plan).error).toBeUndefined();
    expect(plan.parent).toEqual(parent);
    expect(plan.inputsSha256).not.toBe(hashOf(fields));
    expect(planInitialise({ ...CONFIG, parent: renamed }, 0).inputsSha256).toBe(plan.inputsSha256);
    expect(planInitialise({ ...CONFIG, parent: other }, 0).inputsSha256).not.toBe(plan.inputsSha256);
  });
});
