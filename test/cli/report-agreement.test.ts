/** Agreement of reviewers in the report: from the ledgers of the groups, by step and for the run. */
import { expect, test } from 'vitest';

import { agreementCharts, describeAgreement } from '../../views/charts/agreement.ts';
import type { PairAnswer } from '../../core/numbers/bradley-terry.ts';
import { addGiven, type GivenRow } from '../../store/records/rewards/given-rewards.ts';
import { readAgreement } from '../../store/records/rewards/review-agreement.ts';
import { decodeJson, encodeJson } from '../../store/bytes/json.ts';
import { runKey } from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';
import { viewAgreement } from '../../views/runs/agreement.ts';
import { contextOf } from '../views/context.ts';
import { fixtureState, temporaryProject, writeFixtureRun } from './fixture-store.ts';

const STEPS = 2;
const row = { schema: 1, note: null, key: null, at: '2026-11-27T08:00:00.000Z' } as const;
const compared = (left: number, right: number, answer: PairAnswer, by: string | null): GivenRow => {
  return { ...row, kind: 'comparison', left, right, answer, by };
};
const scored = (attempt: number, reward: number, by: string | null): GivenRow => {
  return { ...row, kind: 'reward', attempt, reward, by };
};

async function openRun(): Promise<Store> {
  return writeFixtureRun(temporaryProject(), { run: 'demo', steps: STEPS });
}

async function give(store: Store, step: number, group: number, ...givenRows: GivenRow[]): Promise<void> {
  for (const given of givenRows) await addGiven(store, { run: 'demo', branch: 0, step, group }, given);
}

test('two reviewers who mostly agree on pairs have a number for each step and one for the run', async () => {
  const store = await openRun();
  await give(store, 1, 0, compared(0, 1, 'left', 'ada'), compared(1, 0, 'right', 'bob'));
  await give(store, 1, 1, compared(0, 1, 'right', 'ada'), compared(0, 1, 'right', 'bob'));
  await give(store, 2, 0, compared(0, 1, 'left', 'ada'), compared(0, 1, 'equal', 'bob'), compared(1, 2, 'left', 'ada'));
  const agreement = await readAgreement(store, fixtureState('demo', STEPS));
  expect(agreement.steps.map(({ alpha }) => alpha)).toEqual([1, 0]);
  // Observed 2 of 6, expected (2·3·2 + 2·3·1 + 2·2·1) / 5 = 22 / 5: 1 − 2 · 5 / 22.
  expect(agreement.all).toEqual({ alpha: 1 - 10 / 22, reviewers: 2, units: 3 });
  expect(describeAgreement(agreement.all)).toBe(
    'Agreement between reviewers: Krippendorff’s alpha 0.545 over 3 questions that at least two of 2 reviewers answered (1 is perfect, 0 is chance)',
  );
  expect(agreementCharts(agreement)).toMatchObject([
    { title: 'Agreement between reviewers', x: [1, 2], series: [{ values: [1, 0], style: 'points' }] },
  ]);
});

test('scores are compared as numbers: near ones agree better than distant ones', async () => {
  const store = await openRun();
  await give(store, 1, 0, scored(0, 0.9, 'ada'), scored(0, 0.8, 'bob'), scored(1, 0.1, 'ada'), scored(1, 0.2, 'bob'));
  await give(store, 2, 0, scored(0, 0.9, 'ada'), scored(0, 0.1, 'bob'), scored(1, 0.1, 'ada'), scored(1, 0.9, 'bob'));
  const { steps } = await readAgreement(store, fixtureState('demo', STEPS));
  expect(steps[0]!.alpha).toBeGreaterThan(0.9);
  expect(steps[1]!.alpha).toBeLessThan(0);
});

test('with one reviewer the report says so in place of a number', async () => {
  const store = await openRun();
  await give(store, 1, 0, compared(0, 1, 'left', null), compared(1, 2, 'left', null));
  const agreement = await readAgreement(store, fixtureState('demo', STEPS));
  expect(describeAgreement(agreement.all)).toBe(
    'Agreement between reviewers: not measured, because there was one reviewer',
  );
  expect(agreementCharts(agreement)).toEqual([]);
  expect(describeAgreement({ alpha: null, reviewers: 0, units: 0 })).toMatch(/nothing has been reviewed yet$/);
  expect(describeAgreement({ alpha: null, reviewers: 2, units: 0 })).toMatch(/no two of 2 reviewers answered the same/);
  expect(describeAgreement({ alpha: null, reviewers: 2, units: 4 })).toMatch(
    /undefined, because all answers .* equal$/,
  );
});

test('the pages of a run have the agreement of its reviewers, and none of a run that nobody reviews', async () => {
  const store = await openRun();
  await give(store, 1, 0, compared(0, 1, 'left', 'ada'), compared(1, 0, 'right', 'bob'));
  await give(store, 1, 1, compared(0, 1, 'right', 'ada'), compared(0, 1, 'right', 'bob'));
  expect(await viewAgreement(contextOf(store), 'demo')).toEqual({ agreement: null });
  const review = {
    pairwise: true,
    comparisonsPerAttempt: 2,
    reviewers: 2,
    question: null,
    weights: { review: 1, agent: 0 },
  };
  const file = decodeJson((await store.read(runKey('demo')))!, 'run.json') as { config: object };
  const reviewed = { ...file.config, judge: 'review', external: { review } };
  await store.replace(runKey('demo'), encodeJson({ ...file, config: reviewed }));
  expect(await viewAgreement(contextOf(store), 'demo')).toMatchObject({ agreement: { all: { alpha: 1, units: 2 } } });
});
