import { expect, test } from 'vitest';

import { GatherInput, RunConfig, TrainInput, type ProductionConfig } from '../../../core/contract/contract.ts';
import { findConfigProblem } from '../../../core/rules/config-rules.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { planProductionFiring } from '../../../core/plan/firing.ts';
import { dealConversations, planGathered, planGathering, stepsOfPass } from '../../../core/plan/production.ts';
import { positionAt, type RunPosition } from '../../../core/plan/step.ts';
import { planJudging, planTraining, withPlayed } from '../../../core/plan/window.ts';
import { describeTooFew } from '../../../core/rules/production.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';

const RECORDINGS = { key: `blobs/${hashOf('recordings')}`, sha256: hashOf('recordings'), bytes: 10 };
const START = { branch: 0, step: 40, manifestSha256: hashOf('m40'), adapterSha256: hashOf('a40') };
const OLDER = { branch: 0, step: 33, manifestSha256: hashOf('m33'), adapterSha256: hashOf('a33') };
const PRODUCTION: ProductionConfig = {
  run: 'demo',
  recordings: RECORDINGS,
  conversations: 10,
  samplers: [
    { ...START, age: 0 },
    { ...OLDER, age: 7 },
  ],
  leftOut: {},
};
const CONFIG = defaultRunConfig({
  run: 'nightly-1',
  agent: 'a',
  baseModel: 'pocket',
  steps: 6,
  groupsPerStep: 4,
  parent: { ...START, run: 'demo' },
  train: { baseline: 'rae' },
  production: PRODUCTION,
});

function positionOf(step: number, run = CONFIG.run): RunPosition {
  const prepared = { scenarios: RECORDINGS, trainScenarios: 8, evalScenarios: 2, heldOut: true };
  const checkpoint = { run, branch: 0, step, manifestSha256: hashOf(['m', step]), adapterSha256: hashOf(['a', step]) };
  const place = { branch: 0, step, checkpoint, dealt: 0, emptySteps: 0 };
  return positionAt({ ...place, prepared: { ...prepared, agentCodeSha256: hashOf('code') } });
}

const gather = (step: number, config = CONFIG) => planGathering(config, positionOf(step - 1));

/** The activity's answer. */
function gatheredBy(step: number) {
  return planGathered(gather(step)).map(({ group, scenario, inputsSha256 }) => {
    const [rolloutsSha256, judgedSha256] = [hashOf(['r', inputsSha256]), hashOf(['j', inputsSha256])];
    const counts = { attempts: 1, failed: 0, truncated: 0, calls: 1, sampledTokens: 5, rewards: [1], metrics: {} };
    return { step, group, scenario, rolloutsSha256, judgedSha256, ...counts, use: 'trained' as const };
  });
}

/** The window of the next step, once its conversations are gathered. */
const windowOf = (step: number, run = CONFIG.run): RunPosition =>
  withPlayed(positionOf(step, run), planGathered(gather(step + 1)), gatheredBy(step + 1));

test('the configuration is one of the contract, and one of a run without conversations has no trace of them', () => {
  expect(RunConfig.parse(CONFIG)).toEqual(CONFIG);
  expect(defaultRunConfig({ run: 'x', agent: 'a', baseModel: 'pocket' })).not.toHaveProperty('production');
});

test('a pass trains each conversation once, its last step what is left, and the next pass in another order', () => {
  expect(stepsOfPass(PRODUCTION, CONFIG.groupsPerStep)).toBe(3);
  const passes = [1, 4].map((first) => [first, first + 1, first + 2].map((step) => dealConversations(CONFIG, step)));
  for (const pass of passes) {
    expect(pass.map(({ length }) => length)).toEqual([4, 4, 2]);
    expect(pass.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, index) => index));
  }
  expect(passes[0]).not.toEqual(passes[1]);
  expect(dealConversations({ ...CONFIG, seed: 2 }, 1)).not.toEqual(dealConversations(CONFIG, 1));
});

test('a step is an input of the contract; hashes of its groups name neither run nor later groups', () => {
  const input = gather(2);
  expect(GatherInput.parse(input)).toEqual(input);
  const groups = planGathered(input);
  expect(groups.map(({ scenario }) => scenario)).toEqual(input.conversations);
  expect(new Set(groups.map(({ inputsSha256 }) => inputsSha256)).size).toBe(4);
  expect(planGathered({ ...input, run: 'copy', conversations: input.conversations.slice(0, 2) })).toMatchObject(
    groups.slice(0, 2),
  );
  expect(planJudging(CONFIG, windowOf(1)).minimumGroupSize).toBe(1);
});

test('each step names the policies that sampled the conversations, further behind with every step', () => {
  const trainings = [1, 2, 3].map((step) => planTraining(CONFIG, windowOf(step - 1), gatheredBy(step))!);
  for (const training of trainings) expect(TrainInput.parse(training)).toEqual(training);
  const foreign = true;
  expect(trainings.map(({ samplers }) => samplers)).toEqual([
    [{ ...OLDER, staleness: 7, foreign }],
    [
      { ...START, staleness: 1, foreign },
      { ...OLDER, staleness: 8, foreign },
    ],
    [
      { ...START, staleness: 2, foreign },
      { ...OLDER, staleness: 9, foreign },
    ],
  ]);
  const renamed = planTraining({ ...CONFIG, run: 'copy' }, windowOf(1, 'copy'), gatheredBy(2))!;
  expect(renamed.inputsSha256).toBe(trainings[1]!.inputsSha256);
  const served = { ...CONFIG, production: { ...PRODUCTION, run: 'copy' } };
  expect(planTraining(served, windowOf(1), gatheredBy(2))!.inputsSha256).toBe(trainings[1]!.inputsSha256);
});

test('what the parent alone sampled is trained without other samplers', () => {
  const production = { ...PRODUCTION, samplers: [{ ...START, age: 0 }] };
  expect(planTraining({ ...CONFIG, production }, windowOf(0), gatheredBy(1))).not.toHaveProperty('samplers');
});

test('a firing has as many steps as its conversations need', () => {
  const { production: _, ...template } = CONFIG;
  expect(planProductionFiring(template, PRODUCTION, 2)).toEqual({ ...CONFIG, steps: 6 });
});

test.each<[string, Partial<RunConfig>, RegExp]>([
  [
    'another baseline',
    { train: { ...CONFIG.train, baseline: 'group' } },
    /^baseline must be rae .* leave baseline out$/,
  ],
  ['steps ahead', { maxStaleness: 1 }, /^maxStaleness 1 has no effect .* leave maxStaleness out$/],
  ['a judge', { judge: 'openai/x' }, /^judge openai\/x has no effect .* leave judge out$/],
  ['no start', { parent: null }, /^a run must start from a checkpoint .* pass the checkpoint that served$/],
  ['roles', { roles: { x: { kind: 'policy', policy: 'main' } } }, /without roles .* leave roles out$/],
])('%s is refused with the reason', (_, changes, reason) => {
  expect(findConfigProblem({ ...CONFIG, ...changes })).toMatch(reason);
});

test('too few conversations are named with what was left out', () => {
  const source = { run: 'demo', atLeast: 200 };
  expect(describeTooFew(source, { found: 12, leftOut: { redacted: 3, 'other-policy': 1 } })).toBe(
    'demo has 12 new conversations with feedback that can be trained (left out: 3 redacted, 1 answered by a policy that is too old or unrelated), at least 200 are asked for',
  );
});
