/** Whoever reaches a task queue must not do more than a run may: everything that an activity is handed is of the contract, or refused. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RunConfig } from '../../core/contract/contract.ts';
import { EMPTY_LEDGER } from '../../core/rules/costs.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { planGivenJudging } from '../../core/plan/given.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { newRunState } from '../../core/plan/run-summary.ts';
import { summary } from '../cli/fixture-store.ts';
import { call, evaluateInput, openWorld, rolloutInput, type World } from '../activities/world.ts';

const world = await openWorld();

const CONFIG = defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket' });
const STATE = newRunState(CONFIG);
const CHANGE = { setting: 'steps', from: 1, to: 2, branch: 0, step: 1, reason: null };

/** Position after step 1, which trained nothing. */
const positionOf = ({ policy }: Record<string, unknown>) => {
  const place = { branch: 0, step: 1, checkpoint: policy, policies: [policy] };
  return { ...place, dealt: 1, open: [], emptySteps: 1, costs: EMPTY_LEDGER };
};

type Inputs = Record<keyof World['activities'], Record<string, unknown>>;

/** One good input for each activity. */
async function goodInputs(): Promise<Inputs> {
  const rollout = { ...(await rolloutInput(world.store)) };
  return {
    prepare: { config: CONFIG },
    rollout,
    judgeGroup: { group: rollout },
    gather: {
      run: 'demo',
      branch: 0,
      step: 1,
      recordings: rollout.scenarios,
      conversations: [0],
      minimumGroupSize: 1,
      truncated: 'mask',
    },
    judgeGiven: { ...planGivenJudging({ ...CONFIG, judge: 'external' }, 0, [rollout], () => null) },
    judge: {
      run: 'demo',
      branch: 0,
      step: 1,
      most: 1,
      window: [],
      minimumGroupSize: 2,
      truncated: 'mask',
      inputsSha256: sha256Hex('x'),
      resultsSha256: sha256Hex('x'),
    },
    evaluate: { ...(await evaluateInput(world.store)) },
    record: { state: STATE },
    checkpoint: { state: STATE, summary: summary(1, 1), position: positionOf(rollout) },
    allocate: { schedule: 'nightly', firing: 'a', config: CONFIG, from: null },
    conclude: { schedule: 'nightly', number: 1, state: STATE },
    promote: { schedule: 'nightly', number: 1, state: STATE, served: 'demo', checkpoint: rollout.policy },
    amend: { run: 'demo', number: 1, changes: [CHANGE] },
    locate: { run: 'demo', rollback: null },
  };
}

function refusal(name: keyof Inputs, input: unknown): Promise<unknown> {
  const activity = world.activities[name] as (input: unknown) => Promise<unknown>;
  return call(activity, input, { activityType: name }).then(
    () => null,
    (error: unknown) => error,
  );
}

const REFUSED = { type: 'BadConfig', nonRetryable: true };

test('every activity refuses what its contract does not name, before it writes or reads anything', async () => {
  const inputs = Object.entries(await goodInputs()) as [keyof Inputs, object][];
  expect(inputs.map(([name]) => name).toSorted()).toEqual(Object.keys(world.activities).toSorted());
  const before = readdirSync(world.root, { recursive: true });
  for (const [name, good] of inputs) {
    for (const bad of [
      { ...good, path: '/etc', run: 7, config: 7, state: 7, group: 7, schedule: 7 },
      null,
      undefined,
      'demo',
      [good],
      {},
    ])
      expect(await refusal(name, bad), `${name} ${JSON.stringify(bad)}`).toMatchObject({
        ...REFUSED,
        message: expect.stringMatching(
          new RegExp(`^the input of the activity ${name} must follow the contract`),
        ) as string,
      });
  }
  expect(readdirSync(world.root, { recursive: true })).toEqual(before);
});

test('what only a later version can have sent waits for a worker of that version, and nothing is written', async () => {
  const inputs = Object.entries(await goodInputs()) as [keyof Inputs, object][];
  const before = readdirSync(world.root, { recursive: true });
  for (const [name, good] of inputs)
    expect(await refusal(name, { ...good, unheardOf: 1 }), name).toMatchObject({
      type: 'LaterVersion',
      nonRetryable: false,
      message: `the input of the activity ${name} was sent by a later version of Temper (as a whole: Unrecognized key: "unheardOf"); upgrade this worker: Temporal retries until a worker of that version takes the activity`,
    });
  const { rollout, prepare } = await goodInputs();
  const { train } = CONFIG;
  for (const [name, input] of [
    ['prepare', { config: { ...CONFIG, train: { ...train, loss: { name: 'unheard-of' } } } }],
    ['prepare', { config: { ...CONFIG, train: { ...train, loss: { ...train.loss, unheardOf: 1 } } } }],
    ['rollout', { ...rollout, truncated: 'unheard-of' }],
  ] as const)
    expect(await refusal(name, input), JSON.stringify(input)).toMatchObject({ type: 'LaterVersion' });
  for (const [name, input] of [
    ['prepare', { config: { ...CONFIG, train: { ...train, loss: { name: 7 } } } }],
    ['prepare', { ...prepare, unheardOf: 1, config: null }],
    ['rollout', { ...rollout, truncated: 7 }],
  ] as const)
    expect(await refusal(name, input), JSON.stringify(input)).toMatchObject(REFUSED);
  expect(readdirSync(world.root, { recursive: true })).toEqual(before);
});

test.each(['../other', '/etc', 'a/b', '.hidden', 'a\0b', 'A', '', 7, null])(
  'a run called %j is no run to any activity: its name is part of paths',
  async (run) => {
    const { rollout, judge, evaluate, amend, locate } = await goodInputs();
    const bad: [keyof Inputs, object][] = [
      ['prepare', { config: { ...CONFIG, run } }],
      ['prepare', { config: { ...CONFIG, agent: run } }],
      ['rollout', { ...rollout, run }],
      ['rollout', { ...rollout, agent: run }],
      ['rollout', { ...rollout, policy: { ...(rollout['policy'] as object), run } }],
      ['judgeGroup', { group: { ...rollout, run } }],
      ['judge', { ...judge, run }],
      ['evaluate', { ...evaluate, run }],
      ['record', { state: { ...STATE, run } }],
      ['checkpoint', { state: { ...STATE, run }, summary: summary(1, 1), position: positionOf(rollout) }],
      ['allocate', { schedule: run, firing: 'a', config: CONFIG, from: null }],
      ['conclude', { schedule: run, number: 1, state: STATE }],
      ['amend', { ...amend, run }],
      ['locate', { ...locate, run }],
    ];
    for (const [name, input] of bad) expect(await refusal(name, input), name).toMatchObject(REFUSED);
  },
);

test('a reference names content-addressed bytes and nothing else of the store', async () => {
  const { rollout } = await goodInputs();
  const sha256 = sha256Hex('x');
  for (const key of ['store.json', 'runs/other/run.json', '../x', `blobs/../${sha256}`, `blobs/${sha256.slice(1)}`])
    expect(await refusal('rollout', { ...rollout, scenarios: { key, sha256, bytes: 1 } }), key).toMatchObject(REFUSED);
});

test.each(['/models/x', '../x', 'a/../b', 'a//b', './a', 'a/.b', 'https://host/x', 'a b', '', 'a'.repeat(201)])(
  '%j is no name of a base model',
  (baseModel) => {
    expect(RunConfig.safeParse({ ...CONFIG, baseModel }).success).toBe(false);
  },
);

test.each(['pocket', 'pocket-tools', 'Qwen/Qwen3-0.6B', 'mine.v2'])('%j is a name of a base model', (baseModel) => {
  expect(RunConfig.safeParse({ ...CONFIG, baseModel }).success).toBe(true);
});

test('an agent that the worker was not started with is not played', async () => {
  const { rollout, evaluate } = await goodInputs();
  const bad: [keyof Inputs, object][] = [
    ['prepare', { config: { ...CONFIG, agent: 'other' } }],
    ['rollout', { ...rollout, agent: 'other' }],
    ['evaluate', { ...evaluate, agent: 'other' }],
  ];
  for (const [name, input] of bad)
    expect(await refusal(name, input), name).toMatchObject({
      ...REFUSED,
      message: 'this worker must have the agent other, it has only guess; start it with --agent FILE',
    });
});
