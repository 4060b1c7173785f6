import { pathToFileURL } from 'node:url';
import { expect, expectTypeOf, test } from 'vitest';

import { isAgent, type Scenario } from '../../play/agent.ts';
import { defineAgent, type AgentDefinition } from '../../sdk/agent/define-agent.ts';
import { command, external, resource, ruler, seededRandom, type SetupContext } from '../../sdk/index.ts';
import { readScenarios, sampleScenarios, UniqueIds } from '../../play/scenarios.ts';
import { fileOf } from '../play/sources/files.ts';

const rollout = (): number => 1;
const plain = { name: 'a', scenarios: [], rollout };
const judge = ruler({ judge: 'engine/pocket' });

test('an agent keeps its types: its rollout knows its scenarios', () => {
  const agent = defineAgent({
    name: 'typed',
    scenarios: [{ id: 'a', seed: 3 }],
    rollout: ({ scenario, random }) => scenario.seed * random(),
  });
  expect(isAgent(agent)).toBe(true);
  expect(isAgent({ ...agent, name: 'copied' })).toBe(true);
  expect(isAgent({ name: 'plain', scenarios: [], rollout })).toBe(false);
  expect(isAgent(null)).toBe(false);
});

test('named rewards have exactly the names of their weights, and the compiler says so', () => {
  const scenarios = [{ id: 'a', seed: 3 }];
  const agent = defineAgent({
    name: 'named',
    scenarios,
    rewards: { right: 1, short: 0.1 },
    async rollout({ scenario }) {
      await Promise.resolve();
      return scenario.seed === 0
        ? { rewards: { right: 0, short: 0 } }
        : { rewards: { right: 1, short: scenario.seed } };
    },
  });
  expect(agent.rewards).toEqual({ right: 1, short: 0.1 });
  const named = { name: 'named', scenarios, rewards: { right: 1, short: 0.1 } } as const;
  // @ts-expect-error a reward is missing
  defineAgent({ ...named, rollout: () => ({ rewards: { right: 1 } }) });
  // @ts-expect-error a reward has no weight
  defineAgent({ ...named, rollout: () => ({ rewards: { right: 1, short: 1, late: 1 } }) });
  // @ts-expect-error a number has no name
  defineAgent({ ...named, rollout: () => 1 });
  // @ts-expect-error rewards by name need weights
  defineAgent({ name: 'plain', scenarios, rollout: () => ({ rewards: { right: 1 } }) });
  defineAgent({
    ...named,
    reward: ruler({ judge: 'engine/pocket', weights: { ruler: 1, agent: 1 } }),
    rollout: () => ({ rewards: { right: 1, short: 1 } }),
  });
  defineAgent({ ...named, rollout: command(['true']) });
});

test('external({ name }) leaves one of the rewards to others, and the rollout returns the rest', () => {
  const scenarios = [{ id: 'a', seed: 3 }];
  const named = { name: 'named', scenarios, rewards: { csat: 1, short: 0.1 } } as const;
  const agent = defineAgent({
    ...named,
    reward: external({ name: 'csat', timeoutMs: 1000 }),
    rollout: ({ scenario }) => ({ rewards: { short: scenario.seed } }),
  });
  expect(agent.reward).toMatchObject({ name: 'csat', timeoutMs: 1000, onTimeout: 'drop', minimum: null });
  defineAgent({
    name: 'alone',
    scenarios,
    rewards: { csat: 1 },
    reward: external({ name: 'csat' }),
    rollout: () => {},
  });
  defineAgent({ name: 'plain', scenarios, reward: external(), rollout: () => undefined });
  defineAgent({ name: 'plain', scenarios, reward: external(), rollout: ({ scenario }) => scenario.seed });
  // @ts-expect-error it is given from outside
  defineAgent({ ...named, reward: external({ name: 'csat' }), rollout: () => ({ rewards: { csat: 1, short: 1 } }) });
  // @ts-expect-error a reward is missing
  defineAgent({ ...named, reward: external({ name: 'csat' }), rollout: () => ({ rewards: {} }) });
});

test.each<[object, RegExp]>([
  [{ timeoutMs: 0 }, /^timeoutMs of external must be a whole number of milliseconds, at most two years, got 0; pass/],
  [{ timeoutMs: '7d' }, /got "7d"; pass for example 7 \* 86_400_000$/],
  [
    { timeoutMs: 1, onTimeout: Number.NaN },
    /onTimeout of external must be 'drop' or a finite number from -1000000 to 1000000, got NaN/,
  ],
  [
    { timeoutMs: 1, onTimeout: 'keep' },
    /onTimeout of external must be 'drop' or a finite number from -1000000 to 1000000, got "keep"/,
  ],
  [{ timeoutMs: 1, minimum: -1 }, /minimum of external must be a whole number of at least 0, got -1/],
  [{ onTimeout: 0 }, /^onTimeout of external has no effect without timeoutMs/],
  [{ minimum: 2 }, /^minimum of external has no effect without timeoutMs/],
])('external(%j) is refused', (options, message) => {
  expect(() => external(options)).toThrow(message);
});

test('rewardGroup knows the agent’s scenarios, and gives a number to each attempt, or rewards by name', () => {
  const scenarios = [{ id: 'a', seed: 3 }];
  const rightly = () => ({ rewards: { right: 1 } });
  const named = { name: 'named', scenarios, rewards: { right: 1, novel: 0.5 }, rollout: rightly } as const;
  defineAgent({
    name: 'group',
    scenarios,
    rewardGroup: ({ scenario, attempts }) => attempts.map(({ messages }) => messages.length * scenario.seed),
    rollout: () => undefined,
  });
  defineAgent({
    ...named,
    rewardGroup: ({ attempts }) => attempts.map(({ rewards }) => ({ novel: rewards['right'] ?? 0 })),
  });
  // @ts-expect-error a reward has no weight
  defineAgent({ ...named, rewardGroup: ({ attempts }) => attempts.map(() => ({ late: 1 })) });
});

interface Shop extends Scenario {
  readonly items: readonly string[];
}

test('a rollout knows what the setup of its resources returned', () => {
  const server = resource({
    scope: 'worker',
    setup: ({ id }) => Promise.resolve({ port: id.length }),
    teardown: ({ id }, value) => [id, value?.port],
  });
  const shop = resource({
    scope: 'attempt',
    setup: ({ scenario, resources }: SetupContext<Shop, { server: { port: number } }>) =>
      `${scenario.items.length} on ${resources.server.port}`,
    teardown: ({ id, data }) => [id, data],
  });
  const scenarios: Shop[] = [];
  defineAgent({
    name: 'typed',
    scenarios,
    resources: { server, shop },
    rollout({ resources, scenario }) {
      expectTypeOf(resources.server.port).toBeNumber();
      expectTypeOf(resources.shop).toBeString();
      expectTypeOf(resources).not.toHaveProperty('other');
      return scenario.items.length;
    },
  });
  defineAgent({
    name: 'inline',
    scenarios,
    resources: { one: resource({ scope: 'group', setup: ({ scenario }) => scenario.id, teardown: ({ id }) => id }) },
    rollout: ({ resources }) => resources.one.length,
  });
  defineAgent<Shop, { shop: typeof shop }>({
    name: 'file',
    scenarios: './shops.jsonl',
    resources: { shop },
    rollout: ({ resources, scenario }) => resources.shop.length + scenario.items.length,
  });
  defineAgent({
    name: 'none',
    scenarios,
    rollout({ resources }) {
      expectTypeOf(resources).not.toHaveProperty('shop');
      return 1;
    },
  });
});

test.each<[object, RegExp]>([
  [{ scope: 'run' }, /^scope of resource must be 'worker', 'group' or 'attempt', got "run"; pass 'attempt'$/],
  [{ teardown: null }, /^teardown of resource must be a function, got null; pass one$/],
  [{ teardown: undefined }, /^resource must be given teardown, got none/],
  [{ setupTimeoutMs: 0 }, /^setupTimeoutMs of resource must be a whole number of at least 1, got 0; pass 300000$/],
  [{ end: rollout }, /got end; correct its name, or remove it$/],
])('a resource with %j is refused', (changes, message) => {
  const definition = { scope: 'attempt', setup: rollout, teardown: rollout, ...changes };
  expect(() => resource(definition as Parameters<typeof resource>[0])).toThrow(message);
});

test.each<[object, RegExp]>([
  [{ name: 'a', scenarios: [], rollout, resources: [] }, /must be resource\(\{ … \}\) by name, got \[\]/],
  [{ name: 'a', scenarios: [], rollout, resources: { 'a b': {} } }, /must be named like a variable .* got "a b"/],
  [{ name: 'a', scenarios: [], rollout, resources: { a: {} } }, /resource a of the agent a must be resource\(/],
  [{ name: 'A b', scenarios: [], rollout }, /name of defineAgent must be lower case .* got "A b"/],
  [{ scenarios: [], rollout }, /must be given name, got none/],
  [{ name: 'a', scenarios: [], rollout: 1 }, /rollout of the agent a must be a function, got 1/],
  [{ name: 'a', scenarios: 5, rollout }, /scenarios of the agent a must be a list/],
  [{ name: 'a', rollout }, /must be given scenarios, got none/],
  [{ name: 'a', scenarios: [], evalScenarios: {}, rollout }, /evalScenarios of the agent a must be/],
  [{ name: 'a', scenarios: [], rollout, evalScenario: [] }, /got evalScenario; correct its name, or remove it/],
  [{ ...plain, captureModel: '' }, /captureModel of the agent a must be the name of a model, got ""; pass the one/],
  [{ ...plain, spreadBy: 1 }, /spreadBy of the agent a must be the name of a field of its scenarios, got 1; pass/],
  [{ ...plain, rewards: {} }, /rewards of the agent a must be 1 to 32 weights by name, got \{\}; pass for example/],
  [{ ...plain, rewards: [1] }, /must be 1 to 32 weights by name, got \[1\]/],
  [{ ...plain, rewards: { 'is right': 1 } }, /must be letters, digits, _ and -, got "is right"; rename it/],
  [
    { ...plain, rewards: { right: Infinity } },
    /weight of the reward right .* must be a finite number from .*, got Infinity/,
  ],
  [{ ...plain, rewards: { right: 0, short: 0 } }, /must have another weight than 0, or nothing is learned/],
  [{ ...plain, rewardGroup: [1] }, /rewardGroup of the agent a must be a function, got \[1\]/],
  [{ ...plain, reward: judge, rewardGroup: rollout }, /must have one judge, got reward and rewardGroup; call ruler/],
  [
    { ...plain, reward: external(), rewardGroup: rollout },
    /must have one judge, got reward and rewardGroup; remove one/,
  ],
  [{ ...plain, reward: external(), rewards: { a: 1 } }, /must be named where there are rewards by name/],
  [{ ...plain, reward: external({ name: 'a' }) }, /must name one of its rewards, got none; add rewards: \{ a: 1 \}/],
  [{ ...plain, reward: external({ name: 'a' }), rewards: { b: 1 } }, /must name one of its rewards, got b; add/],
  [{ ...plain, reward: external({ name: 'a' }), rewards: { a: 0, b: 1 } }, /the reward a .* another weight than 0/],
  [{ ...plain, reward: judge, rewards: { right: 1 } }, /rewards of the agent a have no effect when only the judge/],
])('%j is refused with a clear word', (definition, message) => {
  expect(() => defineAgent(definition as AgentDefinition<Scenario>)).toThrow(message);
});

async function* endless(): AsyncGenerator<Scenario & { seed: number }> {
  for (let seed = 0; ; seed++) yield await Promise.resolve({ id: `game-${seed}`, seed });
}

test('scenarios come from lists, generators, functions and files, up to the limit', async () => {
  const expected = [0, 1, 2].map((seed) => ({ id: `game-${seed}`, seed }));
  const file = scenarioFile(`${expected.map((scenario) => JSON.stringify(scenario)).join('\r\n')}\n\n`);
  const sources = [
    expected,
    new Set(expected),
    endless(),
    endless,
    () => Promise.resolve(expected),
    file,
    pathToFileURL(file),
  ];
  for (const source of sources) expect(await readScenarios(source, 3)).toEqual(expected);
});

test('a scenario is what JSON makes of it', async () => {
  const scenario = { id: 'a', when: new Date(0), nothing: undefined };
  expect(await readScenarios([scenario], 1)).toEqual([{ id: 'a', when: '1970-01-01T00:00:00.000Z' }]);
});

test.each<[unknown, RegExp]>([
  [[{ seed: 1 }], /scenario 0 must be an object with a non-empty string id, got {"seed":1}/],
  [[{ id: 'a' }, { id: 2 }], /scenario 1 must be an object with a non-empty string id/],
  [[undefined], /scenario 0 must be an object/],
  [[{ id: 'a', big: 1n }], /scenario 0 must be JSON/],
  ['/nowhere/data.jsonl', /dataset cannot be read.*ENOENT/s],
])('%o is refused with a clear word', async (source, message) => {
  await expect(readScenarios(source as Scenario[], 10)).rejects.toThrow(message);
});

const scenarioFile = (text: string) => fileOf('data.jsonl', text);

test.each([
  ['{"id":"a"}\n\n{"id":\n', /line 3 of the dataset is not valid JSON/],
  [
    '{"id":"a"}\n\n{"name":"b"}\n',
    /^line 3 of .*data\.jsonl must be an object with a non-empty string id, got {"name":"b"}/,
  ],
  ['{"id":"a"}\nnull\n', /^line 2 of .*data\.jsonl must be an object with a non-empty string id, got null/],
  [
    '[{"id":"a"}]\n',
    /^line 1 of .*data\.jsonl must be an object .*, got \[{"id":"a"}\]; write one object on each line, without a list$/,
  ],
])('a line that is no scenario is named: %j', async (text, message) => {
  await expect(readScenarios(scenarioFile(text), 10)).rejects.toThrow(message);
});

test('an id that stands twice in a file is named with both lines', async () => {
  const file = scenarioFile('{"id":"a"}\n\n{"id":"b"}\n{"id":"a"}\n');
  const sample = sampleScenarios(file, { count: 10, spreadBy: undefined, list: 'scenarios' });
  await expect(sample).rejects.toThrow(`got "a" at line 1 of ${file} and line 4 of ${file}; rename one`);
});

test('an id that stands twice is named with both places', () => {
  const unique = new UniqueIds();
  unique.begin('scenarios', { placeOf: null });
  for (const [number, id] of ['a', 'b'].entries()) unique.add({ scenario: { id }, number });
  unique.begin('evalScenarios', { placeOf: null });
  expect(() => unique.add({ scenario: { id: 'b' }, number: 0 })).toThrow(
    /got "b" at scenarios\[1\] and evalScenarios\[0\]/,
  );
});

test('seededRandom repeats', () => {
  expect(seededRandom('a', 1)()).toBe(seededRandom('a', 1)());
  expect(seededRandom('a', 1)()).not.toBe(seededRandom('a', 2)());
});
