import { expect, test } from 'vitest';

import type { GroupResult } from '../../../core/contract/contract.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import type { RunPosition } from '../../../core/plan/step.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { describeRun } from '../../../workflows/run-details.ts';
import { newRunState, summariseStep } from '../../../core/plan/run-summary.ts';

const CONFIG = defaultRunConfig({ run: 'demo', agent: 'agent', baseModel: 'pocket', groupsPerStep: 2, groupSize: 3 });
const CHECKPOINT = { run: 'demo', branch: 0, step: 2, manifestSha256: hashOf('m'), adapterSha256: hashOf('a') };
const POSITION: RunPosition = {
  branch: 0,
  prepared: {
    scenarios: { key: 'blobs/x', sha256: hashOf('s'), bytes: 1 },
    trainScenarios: 4,
    evalScenarios: 1,
    heldOut: false,
    agentCodeSha256: hashOf('c'),
  },
  step: 2,
  policy: CHECKPOINT,
  parent: CHECKPOINT,
  dealt: 6,
  open: [],
  emptySteps: 0,
};

function group(index: number, change: Partial<GroupResult>): GroupResult {
  return {
    step: 2,
    group: index,
    scenario: index,
    rolloutsSha256: hashOf(index),
    judgedSha256: hashOf(-index),
    attempts: 3,
    failed: 0,
    truncated: 0,
    calls: 3,
    sampledTokens: 10,
    rewards: [],
    metrics: {},
    use: 'trained',
    ...change,
  };
}

const NOT_JUDGED = { metrics: {}, seconds: {} };

const played = [
  group(0, { rewards: [1, 0, 1], metrics: { winRate: 2 / 3, moves: 4 } }),
  group(1, { rewards: [1], metrics: { winRate: 1 }, failed: 2, use: 'too-few-attempts' }),
  group(2, { rewards: [], failed: 3, use: 'too-few-attempts' }),
];

test('rewards and metrics weigh each attempt the same, whatever group it was in', () => {
  const summary = summariseStep({
    config: CONFIG,
    position: POSITION,
    played,
    judged: NOT_JUDGED,
    trained: null,
    seconds: { step: 1 },
  });
  expect(summary).toMatchObject({
    step: 2,
    reward: 0.75,
    metrics: { moves: 4, winRate: 0.75 },
    groups: 1,
    replacedGroups: 1,
    unused: { 'too-few-attempts': 2 },
    failedAttempts: 5,
    attempts: 9,
    sampledTokens: 30,
    train: {},
    seconds: { step: 1 },
    adapterSha256: CHECKPOINT.adapterSha256,
  });
});

test('no attempt that is data is no reward, not reward 0', () => {
  const facts = {
    config: CONFIG,
    position: POSITION,
    played: played.slice(2),
    judged: NOT_JUDGED,
    trained: null,
    seconds: {},
  };
  expect(summariseStep(facts)).toMatchObject({ reward: null, metrics: {} });
});

test('a run reads well in Temporal', () => {
  const trained = { checkpoint: CHECKPOINT, metrics: { loss: 0.1 }, seconds: { load: 0.1 }, found: false };
  const summary = summariseStep({
    config: CONFIG,
    position: POSITION,
    played,
    judged: NOT_JUDGED,
    trained,
    seconds: { step: 1.23456 },
  });
  const evaluation = { step: 0, attempts: 1, failed: 0, reward: 0.5, metrics: { winRate: 0.5 }, rolloutsSha256: '' };
  const state = { ...newRunState(CONFIG), step: 2, reward: summary.reward, evals: [evaluation], notes: ['one', 'two'] };
  const waitingFor = 'train step 3 on queue gpu, since 2026-11-21T06:00:00.000Z';
  expect(describeRun({ ...state, phase: 'train', waitingFor }, [summary])).toMatchInlineSnapshot(`
    "### demo: running, step 2 of 100

    - **phase** train
    - **waiting for** train step 3 on queue gpu, since 2026-11-21T06:00:00.000Z
    - **reward** 0.750
    - **agent** agent on pocket
    - **eval after step 0** reward 0.500 · win 0.500

    | step | reward | groups trained | replaced | failed attempts | seconds |
    | ---: | ---: | ---: | ---: | ---: | ---: |
    | 2 | 0.750 | 1 | 1 | 5 | 1.2 |

    > one
    >
    > two

    - \`temper report demo\` writes curves, groups and conversations as one page
    - \`temper show demo\` · \`temper show demo --follow\` · \`temper stop demo\` (finish the step, keep the result)
    - \`temper pause demo\` · \`temper resume demo\` · \`temper set demo KEY=VALUE\` · \`temper rollback demo --step N\`"
  `);
});
