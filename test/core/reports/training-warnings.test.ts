import { expect, test } from 'vitest';

import type { EvalResult, StepSummary } from '../../../core/contract/contract.ts';
import { describeRun } from '../../../workflows/run-details.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { newRunState } from '../../../core/plan/run-summary.ts';
import { entropiesAtStart, warnOfLastEvaluation, warnOfTraining } from '../../../core/reports/training-warnings.ts';
import { summary } from '../../cli/fixture-store.ts';

type Train = StepSummary['train'];
const QUIET = { attempts: 100, failed: 0, truncated: 0, entropy: 1, logprobK3: 1e-12 };

/** One step for each of these metrics. */
function series(...steps: Train[]): StepSummary[] {
  return steps.map((train, index) => ({
    ...summary(index + 1, steps.length),
    metrics: {},
    train: { ...QUIET, ...train },
  }));
}

function lasting(train: Train, count = 3): StepSummary[] {
  return series({}, {}, {}, ...Array.from({ length: count }, () => train));
}

const kinds = (steps: readonly StepSummary[]): string[] => warnOfTraining(steps).map(({ kind }) => kind);

test.each([
  ['entropy', { entropy: 0.1 }, { entropy: 0.099 }, /from 1\.000 in the first steps.*; lower --learning-rate, raise/],
  ['drift', { staleness: 1, logprobK3: 0.05 }, { staleness: 1, logprobK3: 0.051 }, /; lower --learning-rate, --passes/],
  ['drift', { pass1RatioK3: 0.01, pass2RatioK3: 0.05 }, { pass1RatioK3: 0.01, pass2RatioK3: 0.051 }, /k3.* 0\.051,/],
  ['mismatch', { logprobK3: 5e-4 }, { logprobK3: 5.1e-4 }, /set --correction token-truncate/],
  ['mismatch', { logprobK3: 5e-3, mostLogprobK3: 1e-2 }, { logprobK3: 5.1e-3, mostLogprobK3: 1e-2 }, /\(k3 5\.1e-3\)/],
  [
    'truncation',
    { truncated: 20 },
    { truncated: 21 },
    /^21 % of the attempts.*; raise max_tokens of the calls \(--max-tokens where they set none\)/,
  ],
])('%s is a warning in the third step beyond its threshold, and not at it', (kind, at, beyond, text) => {
  expect(kinds(lasting(at))).toEqual([]);
  expect(kinds(lasting(beyond, 2))).toEqual([]);
  expect(warnOfTraining(lasting(beyond))).toEqual([{ kind, text: expect.stringMatching(text) }]);
  expect(kinds([...lasting(beyond), ...series({})])).toEqual([]);
});

test('two skipped steps in a row are a warning, beside those of the steps before them', () => {
  const skipped = { ...summary(7, 9), metrics: {}, train: {}, groups: 0, unused: { 'no-variance': 8 } };
  expect(kinds([...series({}), skipped])).toEqual([]);
  expect(kinds([...lasting({ truncated: 50 }), skipped, skipped])).toEqual(['no-variance', 'truncation']);
});

test.each([
  [
    'a task that is learned',
    { reward: 1, unused: { 'no-variance': 8 } },
    /; or, if no attempt can earn more than 1\.000, end the run: the task is learned$/,
  ],
  [
    'one answer for all that is worth a little',
    { reward: 0.2, metrics: { correctRate: 0.1 }, unused: { 'no-variance': 8 } },
    /larger groups$/,
  ],
  ['one that never earns', { reward: 0, unused: { 'no-variance': 8 } }, /larger groups$/],
  ['steps without rewards', { reward: null, unused: { 'no-variance': 8 } }, /larger groups$/],
  ['other reasons', { reward: 1, unused: { 'all-truncated': 8 } }, /shorter prompts$/],
])('skipped steps of %s', (_, last, text) => {
  const skipped = { ...summary(7, 9), metrics: {}, train: {}, groups: 0, ...last };
  expect(warnOfTraining([skipped, skipped])).toEqual([{ kind: 'no-variance', text: expect.stringMatching(text) }]);
});

const evaluation = (step: number, metrics: EvalResult['metrics'], more: Partial<EvalResult> = {}): EvalResult => ({
  step,
  attempts: 40,
  failed: 0,
  reward: 0.1,
  metrics,
  rolloutsSha256: 'a'.repeat(64),
  ...more,
});

test.each<[string, string[], number, EvalResult[], string?]>([
  ['is not learned', ['no-variance', 'entropy'], 0.79, []],
  ['is learned by what the newest steps earn', [], 0.81, []],
  ['is learned by what the newest steps earn, long after an evaluation', [], 0.81, [evaluation(0, { winRate: 0.5 })]],
  ['is learned by the held-out result', [], 0.5, [evaluation(6, { winRate: 0.9 })]],
  ['is not learned by the held-out result', ['no-variance', 'entropy'], 0.9, [evaluation(6, { winRate: 0.5 })]],
  ['is learned, and the agent fails', ['no-variance'], 0.9, [], 'too-few-attempts'],
])('where the task %s, there are the warnings %j', (_, expected, winRate, evals, reason = 'no-variance') => {
  const skipped = { ...summary(7, 9), train: {}, groups: 0, unused: { [reason]: 8 } };
  const steps = [...lasting({ entropy: 0.05 }), skipped, { ...skipped, step: 8 }];
  const found = warnOfTraining(
    steps.map((step) => ({ ...step, metrics: { winRate } })),
    evals,
  );
  expect(found.map(({ kind }) => kind)).toEqual(expected);
});

test.each<[string, EvalResult, RegExp[]]>([
  [
    'a collapse onto one answer in the right form',
    evaluation(10, { correctRate: 0, jsonRate: 0.9 }, { sameAnswerShare: 0.975 }),
    [
      /^after step 10, the policy gives the same answer in 98 % of the held-out/,
      /json rose from 0\.050 to 0\.900, but correct did not: 0\.000 to 0\.000; /,
    ],
  ],
  [
    'a class that is never right',
    evaluation(
      10,
      { correctRate: 0.6, jsonRate: 1 },
      { lostClasses: [{ field: 'desk', value: '"keys"', attempts: 16 }] },
    ),
    [
      /^after step 10, no held-out attempt succeeded with desk "keys" \(0 of 16 correct\), while 0\.600 of all did; if the policy/,
    ],
  ],
  ['one right answer', evaluation(10, { correctRate: 1, jsonRate: 1 }, { sameAnswerShare: 1 }), []],
  ['both rose', evaluation(10, { correctRate: 0.05, jsonRate: 0.9 }), []],
  ['the goal was reached before', evaluation(10, { correctRate: 0.8, jsonRate: 0.9 }), []],
  ['a small rise', evaluation(10, { correctRate: 0, jsonRate: 0.24 }), []],
  ['a metric that is new, no success rate before', evaluation(10, { correctRate: 0, shortRate: 1 }), []],
  ['nothing trained yet', evaluation(0, { correctRate: 0, jsonRate: 0.9 }, { sameAnswerShare: 1 }), []],
])('evaluations tell of %s, once', (_, last, texts) => {
  const first = evaluation(0, { correctRate: 0, jsonRate: 0.05 });
  const found = warnOfLastEvaluation([first, last]).map(({ text }) => text);
  expect(found).toEqual(texts.map((text) => expect.stringMatching(text) as string));
  expect(warnOfTraining([], [first, last]).map(({ text }) => text)).toEqual(found);
  expect(warnOfLastEvaluation([first, last, last])).toEqual([]);
});

test('a success rate that falls, although the reward does not, is told if intervals do not overlap', () => {
  const compare = (rate: number, attempts: number, more: Partial<EvalResult> = {}) =>
    warnOfLastEvaluation([
      evaluation(0, { correctRate: 0.3 }, { attempts }),
      evaluation(30, { correctRate: rate }, { attempts, reward: 0.6, ...more }),
    ]).map(({ text }) => text);
  expect(compare(0.08, 150)).toEqual([
    expect.stringMatching(
      /^on held-out scenarios, correct fell from 0\.300 to 0\.080, while the reward went.*; open the/,
    ),
  ]);
  expect(compare(0.08, 20)).toEqual([]);
  expect(compare(0.08, 150, { reward: 0.05 })).toEqual([]);
  // The form rose meanwhile: one warning says it.
  expect(
    warnOfLastEvaluation([
      evaluation(0, { correctRate: 0.3, jsonRate: 0.1 }, { attempts: 150 }),
      evaluation(30, { correctRate: 0.08, jsonRate: 0.9 }, { attempts: 150 }),
    ]),
  ).toMatchObject([{ kind: 'goal-unmoved' }]);
});

test('truncated attempts count in all groups that were played, where a step tells them', () => {
  const cut = (truncatedAttempts: number) => lasting({}).map((step) => ({ ...step, attempts: 50, truncatedAttempts }));
  expect(kinds(cut(10))).toEqual([]);
  expect(kinds(cut(11))).toEqual(['truncation']);
});

test('a model that is trained row by row is told from its first step on, supervised or not, over skipped steps, once', () => {
  const steps = series({ packedAsRows: 1 }, { packedAsRows: 1 });
  const text = expect.stringMatching(/each row of a step is trained separately.*; .* set --packing rows/) as string;
  for (const known of [steps, steps.slice(0, 1), steps.map((step) => ({ ...step, examples: 4 }))])
    expect(warnOfTraining(known)).toEqual([{ kind: 'row-by-row', text }]);
  expect(kinds([...steps, { ...summary(3, 3), train: {}, groups: 0, unused: {} }])).toEqual(['row-by-row']);
  expect(kinds([...steps, ...series({})])).toEqual([]);
});

test('a corrected mismatch, supervised steps and numbers that were not finite warn of nothing', () => {
  expect(kinds(lasting({ logprobK3: 1e-3, correctedShare: 0 }))).toEqual([]);
  expect(kinds(lasting({ entropy: 0.01 }).map((step) => ({ ...step, examples: 4 })))).toEqual([]);
  expect(kinds(lasting({ entropy: null, logprobK3: null }))).toEqual([]);
  expect(warnOfTraining([])).toEqual([]);
});

test("a workflow that carries the newest steps and the first entropies says what the whole curve says, in Temporal's UI", () => {
  const steps = lasting({ entropy: 0.05 }, 12);
  const first = entropiesAtStart(steps);
  expect(first.map(({ step }) => step)).toEqual([1, 2, 3]);
  const found = warnOfTraining(steps.slice(-10), [], first);
  expect(found).toEqual(warnOfTraining(steps));
  expect(warnOfTraining(steps.slice(-10))).toEqual([]);
  const state = newRunState(defaultRunConfig({ run: 'demo', agent: 'agent', baseModel: 'pocket' }));
  expect(describeRun(state, steps.slice(-10), found)).toContain(`\n\n**Warning**: ${found[0]!.text}\n\n| step |`);
});
