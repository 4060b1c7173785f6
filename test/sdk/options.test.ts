import { expect, test } from 'vitest';

import * as sdk from '../../sdk/index.ts';
import { mcp } from '../../sdk/mcp/mcp.ts';
import * as testing from '../../sdk/testing/index.ts';
import { LocalBackend } from '../../workers/local-backend/local-backend.ts';
import { workflowAgent } from '../../workers/workflow-agents/workflow-agent.ts';
import { FakeWorld } from './loop/fake-backend.ts';

type Options = Record<string, unknown>;

const TRAINED = { name: 'one', project: 'demo', baseModel: 'pocket' };
const RULER = { judge: 'openai/gpt-5-mini' };
const play = () => 1;
const aTool = sdk.tool({ name: 'look', parameters: {}, run: play });

/** Each thing of the SDK that takes options: options that it takes, and how it is given them. */
const TAKERS: Readonly<Record<string, readonly [good: Options, give: (options: never) => unknown]>> = {
  defineAgent: [{ name: 'a', scenarios: [], rollout: play }, sdk.defineAgent],
  resource: [{ scope: 'attempt', setup: play, teardown: play }, (options) => sdk.resource(options)],
  league: [{ every: 10, keep: 5 }, (options) => sdk.league(options)],
  command: [{}, (options) => sdk.command(['true'], options)],
  jsonl: [{}, (options: never) => sdk.jsonl('a.jsonl', options)],
  csv: [{}, (options: never) => sdk.csv('a.csv', options)],
  parquet: [{}, (options: never) => sdk.parquet('a.parquet', options)],
  sqlite: [{}, (options: never) => sdk.sqlite('a.db', 'select 1', options)],
  hf: [{}, (options: never) => sdk.hf('openai/gsm8k', options)],
  Model: [{ name: 'a', project: 'p' }, (options) => new sdk.Model(options)],
  TrainableModel: [TRAINED, (options) => new sdk.TrainableModel(options)],
  LocalBackend: [{}, (options) => new LocalBackend(options)],
  'backend.forkCheckpoint': [
    { fromModel: 'none' },
    (options) => new LocalBackend().forkCheckpoint(new sdk.TrainableModel(TRAINED), options),
  ],
  Trajectory: [{ messagesAndChoices: [], reward: 1 }, (options) => new sdk.Trajectory(options)],
  TrajectoryGroup: [{}, (options) => new sdk.TrajectoryGroup([], options)],
  gatherTrajectoryGroups: [{ model: null }, (options) => sdk.gatherTrajectoryGroups([], options)],
  trajectoryGroupBatches: [{ model: {}, batchSize: 1 }, (options) => sdk.trajectoryGroupBatches([], options)],
  iterateDataset: [{}, (options) => sdk.iterateDataset([], options)],
  'model.train': [{}, (options) => withModel((model) => model.train([], options))],
  'model.trainSft': [{}, (options) => withModel((model) => model.trainSft([], options))],
  'model.deleteCheckpoints': [{}, (options) => withModel((model) => model.deleteCheckpoints(options))],
  workflowAgent: [{ name: 'a', scenarios: [], workflow: 'w', taskQueue: 'q', reward: play }, workflowAgent],
  retry: [{}, (options) => sdk.retry(play, options)],
  tool: [{ name: 'a', run: play }, (options) => sdk.tool(options)],
  toolLoop: [{ messages: [], tools: [aTool] }, (options) => sdk.toolLoop({} as sdk.ToolLoopContext, options)],
  mcp: [{ command: 'true' }, mcp],
  'mcp.url': [{ url: 'http://127.0.0.1:9/mcp', headers: {} }, mcp],
  playAgent: [
    { scenario: { id: 'a' }, answers: [] },
    (options) => testing.playAgent(sdk.defineAgent({ name: 'a', scenarios: [], rollout: play }), options),
  ],
  ruler: [RULER, (options) => sdk.ruler(options)],
  external: [{}, (options) => sdk.external(options)],
  review: [{}, (options) => sdk.review(options)],
  'ruler.judge': [{ baseUrl: 'https://a.b/v1', model: 'm' }, (judge) => sdk.ruler({ judge })],
  'ruler.context': [{}, (context) => sdk.scoreConversations([], sdk.ruler(RULER), context)],
};

async function withWorld(use: (world: FakeWorld) => Promise<unknown>): Promise<void> {
  const world = await FakeWorld.open();
  try {
    await use(world);
  } finally {
    await world.close();
  }
}

const withModel = (use: (model: sdk.TrainableModel) => Promise<unknown>): Promise<void> =>
  withWorld(async (world) => use(await world.model()));

/** Two attempts with different rewards. */
function groupOf(model: sdk.TrainableModel): sdk.TrajectoryGroup {
  const messages = [{ role: 'user' as const, content: 'a digit?' }];
  const playOne = async ({ attempt }: sdk.AttemptContext) => {
    const { choices } = await model.openai().chat.completions.create({ model: model.name, messages });
    return new sdk.Trajectory({ messagesAndChoices: [...messages, choices[0]!], reward: attempt });
  };
  return new sdk.TrajectoryGroup([playOne, playOne]);
}

const names = Object.keys(TAKERS);

async function complaint(of: string, options: Options): Promise<string> {
  const [, give] = TAKERS[of]!;
  const given: unknown = await Promise.resolve()
    .then(() => give(options as never))
    .catch((error: unknown) => error);
  return given instanceof Error ? `${(given as { type?: string }).type}: ${given.message}` : 'taken';
}

test.each(names)('%s refuses an option that it does not have, and names those that it has', async (of) => {
  const [good] = TAKERS[of]!;
  const refusal = await complaint(of, { ...good, wrongName: 1 });
  expect(refusal).toContain('BadConfig');
  expect(refusal).toContain(of.startsWith('ruler.') ? of : of.split('.').at(-1));
  expect(refusal).toMatch(/ has the options \w+(?:, \w+)*, got wrongName; correct its name, or remove it$/);
});

/** As the refusal of another one names them; types hold each schema to the options. */
async function optionsOf(of: string): Promise<string[]> {
  const refusal = await complaint(of, { ...TAKERS[of]![0], wrongName: 1 });
  return /has the options (.*), got wrongName/.exec(refusal)![1]!.split(', ');
}

const needed = names.flatMap((of) =>
  Object.keys(TAKERS[of]![0])
    .filter((option) => option !== 'headers')
    .map((option) => [of, option] as const),
);

test.each(needed)('%s says that it needs %s', async (of, option) => {
  const { [option]: _, ...rest } = TAKERS[of]![0];
  const refusal = await complaint(of, rest);
  expect(refusal).toContain('BadConfig');
  expect(refusal).toContain(option);
});

test('exceptions of a group are what gathering found, and not an option', () => {
  const options = { exceptions: [{ attempt: 0, type: 'Error', message: 'x' }] };
  expect(() => new sdk.TrajectoryGroup([], options as object)).toThrow(/TrajectoryGroup has .*got exceptions/);
});

/** Part of the trainer's configuration, which is handed on as a whole. */
const HANDED_ON = {
  advantageScale: 'group-std',
  leaveOneOut: true,
  truncated: 'keep',
  maxLogprobMismatch: 0.5,
  microBatchTokens: 1234,
  passes: 3,
  miniBatches: 2,
  reduction: 'constant',
  reductionTokens: 99,
  correction: 'token-mask',
  correctionCap: 3,
  klCoefficient: 0.1,
  klAs: 'reward',
  entropyCoefficient: 0.01,
  overlongBuffer: 7,
  overlongPenalty: 0.5,
  packing: 'tree',
};

test('what model.train is given goes to the trainer', async () => {
  const given = { ...HANDED_ON, learningRate: 0.25, optimizer: { beta1: 0.5 } } as sdk.TrainOptions;
  const asked = { learningRate: 0.25, train: { ...HANDED_ON, optimizer: { beta1: 0.5 } } };
  await withWorld(async (world) => {
    const model = await world.model();
    const groups = [groupOf(model), groupOf(model)];
    await model.train(await sdk.gatherTrajectoryGroups(groups, { model }), given);
    expect(world.works.at(-1)).toMatchObject({ kind: 'train', input: asked });
  });
});

/** A model that calls a tool. */
const message = { tool_calls: [{ id: '0', type: 'function', function: { name: aTool.name, arguments: '{}' } }] };
const CALLING = {
  model: 'm',
  openai: { chat: { completions: { create: async () => ({ choices: [{ message }] }) } } },
} as unknown as sdk.ToolLoopContext;

/** Handed on to gathering as a whole. */
const HOW = {
  split: 'val',
  concurrency: 1,
  pbarDesc: null,
  afterEach: (group: sdk.TrajectoryGroup) => group,
  onProgress: () => undefined,
} as const;

/** Options that are read only by what was made with them. */
const USES: Partial<Record<string, (watch: <T extends object>(options: T) => T) => Promise<unknown>>> = {
  csv: async (watch) => sdk.csv('a.csv', watch({ map: () => ({ id: '' }), delimiter: ';' })),
  hf: async (watch) => {
    const place = { config: 'main', split: 'train', revision: '0'.repeat(40), via: 'rows' } as const;
    return sdk.hf('openai/gsm8k', watch({ map: () => ({ id: '' }), ...place }));
  },
  TrainableModel: (watch) =>
    withWorld((world) => new sdk.TrainableModel(watch({ ...TRAINED })).register(world.backend())),
  LocalBackend: (watch) =>
    withWorld(({ folder }) => new LocalBackend(watch({ folder })).open('./no-such-model', 'a.model')),
  gatherTrajectoryGroups: (watch) =>
    withModel((model) => sdk.gatherTrajectoryGroups([groupOf(model)], watch({ model }))),
  trajectoryGroupBatches: (watch) =>
    withModel((model) => sdk.trajectoryGroupBatches([groupOf(model)], watch({ model, batchSize: 1, ...HOW })).next()),
  'model.train': (watch) =>
    withModel(async (model) =>
      model.train(
        await sdk.gatherTrajectoryGroups([groupOf(model), groupOf(model)], { model }),
        watch({ ...HANDED_ON, baseline: 'group', klEstimator: 'k3', loss: {}, optimizer: {} } as sdk.TrainOptions),
      ),
    ),
  'model.trainSft': (watch) => {
    const messages = (['user', 'assistant'] as const).map((role) => ({ role, content: 'a' }));
    const given = { learningRate: 1, optimizer: {}, microBatchTokens: 99, packing: 'tree' } as const;
    return withModel((model) => model.trainSft([{ messages }], watch(given)));
  },
  toolLoop: (watch) => sdk.toolLoop(CALLING, watch({ messages: [], tools: [aTool], maxTurns: 1 })),
};

test.each(names)('%s reads each of its options', async (of) => {
  const reads: string[] = [];
  const get = (options: object, name: string | symbol): unknown => {
    reads.push(String(name));
    return Reflect.get(options, name);
  };
  const watch = <T extends object>(options: T) => new Proxy(options, { get }) as T;
  const [good, give] = TAKERS[of]!;
  await (USES[of] ?? (async () => give(watch({ ...good }) as never)))(watch).catch(() => undefined);
  // The check reads each option once; agents keep them for their attempts.
  const least = ['defineAgent', 'workflowAgent'].includes(of) ? 1 : 2;
  const unread = (await optionsOf(of)).filter((option) => reads.filter((name) => name === option).length < least);
  expect(unread).toEqual([]);
});

test('every function and class of the package that takes options has a table of them', () => {
  const others = [
    'frozen',
    'label',
    'policy',
    'seededRandom',
    'rulerScoreGroup',
    'scoreConversations',
    'replayAttempt',
  ];
  const exported = Object.entries({ ...sdk, ...testing, LocalBackend, mcp, workflowAgent }).flatMap(([name, value]) =>
    typeof value === 'function' ? name : [],
  );
  expect(exported.filter((name) => !others.includes(name)).toSorted()).toEqual(
    names.filter((name) => !name.includes('.')).toSorted(),
  );
});
