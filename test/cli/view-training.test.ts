import pc from 'picocolors';
import { expect, test } from 'vitest';
import { linesSince, NOTHING_TOLD } from '../../cli/watch/lines.ts';
import { renderLive } from '../../cli/watch/live.ts';
import { fixtureState, summary } from './fixture-store.ts';

const state = { ...fixtureState('demo', 4), evals: [] };
const colors = pc.createColors(false);
/** Metrics of a step that trains twice what an older checkpoint sampled. */
const trained = {
  loss: -0.0123,
  entropy: 0.4221,
  gradNorm: 0.1443,
  logprobK3: 2.2e-7,
  maxAbsLogRatio: 0.0017,
  pass1RatioK3: 2.2e-7,
  pass2RatioK3: 0.0123,
  clippedShare: 0.0215,
  staleness: 1,
  rewardStd: 0.45,
  rewardMin: 0,
  rewardMax: 1,
  advantageMass: 0.383,
  sampledTokens: 1000,
  trainedTokens: 960,
  sharedTokens: 5240,
  forks: 0,
};
const seconds = { rollout: 0.51, judge: 0.16, wait: 0.24, train: 0.67, step: 1.58, 'trainer.commit': 0.08 };

test('of training it shows what a person acts on first, in at most two rows, and cuts no number', () => {
  const last = { ...summary(40, 100), train: trained, failedAttempts: 1, truncatedAttempts: 2, seconds };
  const shown = (columns: number, rows = 30) =>
    renderLive(
      { run: 'demo', state: null, steps: [last], status: null, events: [], hint: '' },
      { columns, rows, colors },
    )
      .split('\n')
      .filter((line) => /^(last|train|speed| {5} )/.test(line))
      .join('\n');
  const wide = shown(120).split('\n');
  expect(wide[0]).toContain('last  reward 0.449 ± 0.450 (0 to 1) · win 0.649 ');
  expect(wide[1]).toMatch(
    /^train entropy 0.422 · gradNorm 0.144 · pass2RatioK3 0.012 · clippedShare 0.021 · staleness 1 · failed 1 · truncated 2$/,
  );
  expect(wide[2]).toMatch(/^ {6}maxAbsLogRatio 0.002 · .* tokens 960 trained, 40 masked, 5240 shared$/);
  expect(wide[3]).toMatch(/^speed 582 tokens\/s · 1.6 s a step · rollout 0.5 s .* commit 0.1 s$/);
  // Narrower: the same first, whole numbers alone, and without rows to spare a single row of training.
  expect(shown(80)).toMatch(/ …$|…\n/);
  expect(shown(80)).toContain(
    '\ntrain entropy 0.422 · gradNorm 0.144 · pass2RatioK3 0.012 · clippedShare 0.021\n      stal',
  );
  expect(shown(46)).toContain(
    '\ntrain entropy 0.422 · gradNorm 0.144\n      pass2RatioK3 0.012 · clippedShare 0.021\nspeed',
  );
  expect(shown(80, 20)).toContain(' · pass2RatioK3 0.012 · clippedShare 0.021\nspeed 582 tokens/s');
});

test('the line of a step says how training went, where it trained anything', () => {
  const steps = [
    { ...summary(1, 2), train: trained },
    { ...summary(2, 2), train: {} },
  ];
  const [first, second] = linesSince(NOTHING_TOLD, { state, steps }).lines;
  expect(first).toMatch(/^step 1\/4 .* moves 3.100 {2}entropy 0.422 {2}0.8 s$/);
  expect(second).toMatch(/^step 2\/4 .* moves 2.600 {2}0.8 s$/);
});

test('a model that is trained row by row is told once', () => {
  const rowByRow = [1, 2, 3, 4].map((step) => ({ ...summary(step, 4), train: { packedAsRows: 1 } }));
  const { lines } = linesSince(NOTHING_TOLD, { state, steps: rowByRow });
  expect(lines.filter((line) => line.startsWith('warning'))).toEqual([
    expect.stringMatching(/^warning: the base model does not compute shared prefixes once/),
  ]);
});
