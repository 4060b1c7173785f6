/** Advisories: each rule at its threshold, with what to do and where to look. */
import { expect, test } from 'vitest';
import type { EvalResult, StepSummary } from '../../core/contract/contract.ts';
import { findAdvisories, findStall, usualSeconds } from '../../views/runs/advisories.ts';
import { findDominantReward } from '../../views/runs/dominant-reward.ts';
import { seededRandom } from '../../bench/ui/made-attempts.ts';
import { summary } from '../cli/fixture-store.ts';

function curve(count: number, change: (step: number) => Partial<StepSummary> = () => ({})): StepSummary[] {
  return Array.from({ length: count }, (_, index) => {
    const step = index + 1;
    return { ...summary(step, 2 * count), unused: {}, replacedGroups: 0, ...change(step) };
  });
}

const kinds = (steps: readonly StepSummary[]) => findAdvisories(steps).map(({ kind }) => kind);

test('a healthy run has none, and neither has one without steps', () => {
  expect(kinds(curve(30))).toEqual([]);
  expect(kinds([])).toEqual([]);
});

test('more than 5 % of failed attempts are told, with failed attempts of those steps to look at', () => {
  expect(kinds(curve(20, () => ({ attempts: 100, failedAttempts: 5 })))).toEqual([]);
  const [found] = findAdvisories(curve(20, (step) => ({ attempts: 100, failedAttempts: step > 15 ? 12 : 0 })));
  expect(found).toEqual({
    kind: 'aborts',
    level: 'advice',
    text: '6 % of the attempts of the newest 10 steps failed (at most 5 % is usual)',
    remedy: 'open one of the attempts, fix its error in the agent, or catch it and return a low reward',
    steps: [16, 20],
    look: { kind: 'train', fromStep: 16, toStep: 20, failure: 'any' },
  });
  expect(findAdvisories(curve(20, () => ({ attempts: 10, failedAttempts: 8 })))[0]!.level).toBe('alarm');
});

test('groups without variance are told from more than half on, where they are not solved', () => {
  const even = (count: number, metrics = { winRate: 0.79 }) =>
    curve(20, () => ({ groups: 10 - count, unused: { 'no-variance': count }, metrics }));
  expect(kinds(even(5))).toEqual([]);
  expect(findAdvisories(even(6))[0]).toMatchObject({ kind: 'no-variance', level: 'advice', steps: [11, 20] });
  expect(kinds(even(6, { winRate: 0.81 }))).toEqual([]);
});

test('held-out results are told first, and a learned task has no alarm', () => {
  const evaluation = (step: number, correctRate: number, jsonRate: number, more: Partial<EvalResult> = {}) => ({
    step,
    reward: 0.2,
    attempts: 40,
    failed: 0,
    metrics: { correctRate, jsonRate },
    rolloutsSha256: 'a'.repeat(64),
    ...more,
  });
  const even = curve(20, (step) => ({
    reward: 1,
    groups: 0,
    unused: { 'no-variance': 8 },
    train: { entropy: 1 / step },
  }));
  const collapsed = [evaluation(0, 0, 0.05), evaluation(20, 0, 0.9, { sameAnswerShare: 0.95 })];
  expect(findAdvisories(even, collapsed).map(({ kind, level }) => [kind, level])).toEqual(
    ['same-answer', 'goal-unmoved', 'constant-reward'].map((kind) => [kind, 'alarm']),
  );
  expect(findAdvisories(even, [evaluation(0, 0.4, 0.5), evaluation(20, 0.9, 1)])).toEqual([]);
});

test('a run that wins more and more, until its groups are equal, has no alarm at any step', () => {
  const demo = curve(60, (step) => ({
    metrics: { winRate: Math.min(0.96, 0.5 + step / 90) },
    groups: step > 50 ? 0 : 4,
    unused: { 'no-variance': step > 50 ? 8 : 4 },
    train: step > 50 ? {} : { entropy: 1.6 * 0.93 ** step },
  }));
  const isLow = ({ train }: StepSummary) => (train['entropy'] ?? 1) < 0.1 * 1.6 * 0.93 ** 2;
  expect(demo.filter(isLow).length).toBeGreaterThan(10);
  expect(demo.flatMap((_, index) => findAdvisories(demo.slice(0, index + 1)))).toEqual([]);
  const lost = demo.map((step) => ({ ...step, metrics: { winRate: 0.5 } }));
  expect([kinds(lost.slice(0, 50)), kinds(lost)]).toEqual([['entropy'], ['no-variance']]);
});

test('steps that were skipped in a row are an alarm, told once', () => {
  const steps = curve(20, (step) => (step > 17 ? { groups: 0, unused: { 'no-variance': 8 }, reward: step / 20 } : {}));
  const found = findAdvisories(steps);
  expect(found.map(({ kind, level }) => [kind, level])).toEqual([['no-variance', 'alarm']]);
  expect(found[0]!.text).toBe('3 steps in a row were skipped, so the policy is not learning');
  expect(found[0]!.remedy).toMatch(/^try scenarios that the model solves at times/);
});

test('a reward that is the same in all attempts is an alarm of its own, from the step on at which it began', () => {
  const steps = curve(20, (step) => (step > 10 ? { groups: 0, unused: { 'no-variance': 8 }, reward: 0.5 } : {}));
  const found = findAdvisories(steps);
  expect(found.map(({ kind }) => kind)).toEqual(['constant-reward']);
  expect(found[0]).toMatchObject({ level: 'alarm', steps: [11, 20] });
  expect(found[0]!.text).toMatch('every attempt earns 0.500');
});

test('truncation is told by the rule of the training warnings, and for steps that it left nothing to train', () => {
  const often = curve(20, () => ({ truncatedAttempts: 40, attempts: 128 }));
  expect(findAdvisories(often)).toMatchObject([
    {
      kind: 'truncation',
      text: expect.stringContaining('31 % of the attempts were truncated'),
      look: { truncated: true },
    },
  ]);
  const skipped = curve(20, (step) =>
    step % 2 === 0 ? { truncatedAttempts: 128, attempts: 128, groups: 0, unused: { 'all-truncated': 8 } } : {},
  );
  expect(kinds(skipped)).toContain('truncation');
});

test('entropy that collapses is an alarm, before all advice', () => {
  const steps = curve(30, (step) => ({ train: { entropy: step > 20 ? 0.01 : 1.2 }, failedAttempts: 60 }));
  expect(findAdvisories(steps).map(({ kind, level }) => [kind, level])).toEqual([
    ['entropy', 'alarm'],
    ['aborts', 'advice'],
  ]);
});

test('attempts that double or halve their tokens are told, with the extreme ones first', () => {
  const length = (last: number) => curve(20, (step) => ({ attempts: 10, sampledTokens: step > 15 ? last : 1000 }));
  expect(kinds(length(2000))).toEqual([]);
  expect(findAdvisories(length(2100))[0]).toMatchObject({
    kind: 'length-drift',
    look: { sort: '-tokens', fromStep: 16 },
  });
  expect(findAdvisories(length(499))[0]).toMatchObject({ kind: 'length-drift', look: { sort: 'tokens' } });
  expect(findAdvisories(length(499))[0]!.text).toContain('shorter');
});

const MINUTE = 60_000;
const running = { state: 'running', phase: 'rollout', step: 4 } as const;

test('a phase is stalled after six medians and half an hour, whichever is longer', () => {
  const usual = usualSeconds(curve(9, (step) => ({ seconds: { rollout: step === 1 ? 900 : 600, step: 700 } })));
  expect(usual['rollout']).toBe(600);
  const after = (minutes: number, state: Parameters<typeof findStall>[0] = running) =>
    findStall(state, usual, 0, minutes * MINUTE);
  expect(after(59)).toBeNull();
  expect(after(61)).toMatchObject({ kind: 'stalled', level: 'alarm', steps: [5, 5] });
  expect(findStall(running, { rollout: 10 }, 0, 29 * MINUTE)).toBeNull();
  expect(findStall(running, { rollout: 10 }, 0, 31 * MINUTE)?.text).toBe(
    'step 5 has been in its phase rollout for 31 min 0 s, which usually takes 10 s',
  );
});

test('a run that is paused, ended, or waits for rewards is not stalled', () => {
  const stalled = (state: Parameters<typeof findStall>[0]) => findStall(state, { step: 1 }, 0, 600 * MINUTE);
  expect(stalled(running)).not.toBeNull();
  for (const state of ['paused', 'completed', 'failed'] as const) expect(stalled({ ...running, state })).toBeNull();
  const awaited = {
    step: 5,
    missing: 1,
    attempts: 2,
    waiting: 1,
    groups: 1,
    complete: 0,
    needed: 1,
    since: '2026-11-01T00:00:00Z',
    nextDeadline: null,
  };
  expect(stalled({ ...running, awaited })).toBeNull();
  expect(stalled(null)).toBeNull();
});

type Rewarded = Parameters<typeof findDominantReward>[0][number];

/** Attempts whose reward is the weighted sum of two rewards with the given spreads. */
function rewarded(spreads: readonly [number, number], weights: readonly [number, number]): Rewarded[] {
  const random = seededRandom(7);
  return Array.from({ length: 64 }, (_, index) => {
    const level = index >> 3;
    const [answer, format] = [level + spreads[0] * random(), spreads[1] * random()];
    return {
      branch: 0,
      step: 3 + (level >> 2),
      group: level,
      reward: weights[0] * answer + weights[1] * format,
      metrics: { 'reward/answer': answer, 'reward/format': format, moves: 100 * random() },
    };
  });
}

test('a reward that makes more than 80 % of the differences within groups dominates, weights included', () => {
  expect(findDominantReward(rewarded([1, 1], [1, 1]))).toBeNull();
  expect(findDominantReward(rewarded([1, 1], [1, 10]))).toMatchObject({
    kind: 'dominant-reward',
    steps: [3, 4],
    text: expect.stringMatching(/^the reward format makes 99 % of the differences within groups \(weight about 10\)/),
  });
  expect(findDominantReward(rewarded([10, 1], [1, 1]))?.text).toMatch(/^the reward answer/);
  // A small weight evens out a large spread.
  expect(findDominantReward(rewarded([10, 1], [0.1, 1]))).toBeNull();
});

test('one named reward, few attempts, or rewards that never change are no case of dominance', () => {
  expect(findDominantReward([])).toBeNull();
  expect(findDominantReward(rewarded([1, 1], [1, 100]).slice(0, 10))).toBeNull();
  const one = rewarded([1, 1], [1, 1]).map((row) => ({ ...row, metrics: { 'reward/answer': 1 } }));
  expect(findDominantReward(one)).toBeNull();
  const still = rewarded([0, 0], [1, 1]).map((row) => ({
    ...row,
    metrics: { 'reward/a': 1, 'reward/b': 2 },
    reward: 3,
  }));
  expect(findDominantReward(still)).toBeNull();
});

test('a success rate that falls while the reward does not is told; an alarm if intervals do not overlap', () => {
  const evaluation = (step: number, reward: number, correctRate: number, attempts = 8) => ({
    step,
    reward,
    attempts,
    failed: 0,
    metrics: { correctRate },
    rolloutsSha256: 'a'.repeat(64),
  });
  const compare = (first: EvalResult, last: EvalResult) => findAdvisories([], [first, last])[0] ?? null;
  expect(compare(evaluation(0, 8.6, 0.5), evaluation(15, 8.9, 0.125))).toMatchObject({
    kind: 'reward-against-goal',
    level: 'advice',
    steps: [1, 15],
    text: expect.stringMatching(/^on held-out scenarios, correct fell from 0.500 to 0.125, while the reward went/),
  });
  expect(compare(evaluation(0, 8.6, 0.5, 200), evaluation(15, 8.9, 0.125, 200))?.level).toBe('alarm');
  // The reward says so, too; the fall is small; nothing was trained; no rate is reported.
  expect(compare(evaluation(0, 8.6, 0.5), evaluation(15, 8.1, 0.125))).toBeNull();
  expect(compare(evaluation(0, 8.6, 0.5), evaluation(15, 8.9, 0.45))).toBeNull();
  expect(findAdvisories([], [evaluation(0, 1, 0.5)])).toEqual([]);
  const unrated = { ...evaluation(15, 9, 0), metrics: {} };
  expect(compare({ ...evaluation(0, 8, 0), metrics: {} }, unrated)).toBeNull();
  expect(findAdvisories([], [])).toEqual([]);
});
