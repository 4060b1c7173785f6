import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';

import { Prepared, type RunConfig } from '../../core/contract.ts';
import { defaultRunConfig, type RunOptions } from '../../core/run-defaults.ts';
import type { AgentDefinition, Scenario } from '../../sdk/define-agent.ts';
import { runKey, scenariosKey } from '../../store/layout.ts';
import { listRuns, readPrepared, readRun, readScenarios } from '../../store/run-reader.ts';
import { call, openWorld, type World } from './world.ts';

let world: World;
afterEach(() => world.close());

function config(options: Partial<RunOptions> = {}): RunConfig {
  return defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket', ...options });
}

async function prepare(
  definition: Partial<AgentDefinition<Scenario>>,
  options: Partial<RunOptions> = {},
): Promise<Prepared> {
  world = await openWorld(definition);
  return call(world.activities.prepare, { config: config(options) });
}

test('scenarios are written once, training first, and the run with its configuration', async () => {
  const prepared = await prepare({ evalScenarios: [{ id: 'e0' }, { id: 'e1' }] });
  expect(Prepared.parse(prepared)).toEqual(prepared);
  expect(prepared).toMatchObject({ trainScenarios: 30, evalScenarios: 2, heldOut: false });
  const lines = await readScenarios(world.store, prepared);
  expect(lines.map(({ id }) => id).slice(-3)).toEqual(['s29', 'e0', 'e1']);
  expect(lines[0]).toEqual({ id: 's0', scenario: { id: 's0' } });
  expect(readFileSync(join(world.root, scenariosKey('demo')), 'utf8').split('\n')).toHaveLength(33);
  expect(await readPrepared(world.store, 'demo')).toEqual(prepared);
  expect((await readRun(world.store, 'demo'))?.file).toMatchObject({ schema: 1, config: config(), parent: null });
  expect(await listRuns(world.store)).toEqual(['demo']);
});

test('without evaluation scenarios a seeded tenth is held out', async () => {
  const prepared = await prepare({});
  expect(prepared).toMatchObject({ trainScenarios: 27, evalScenarios: 3, heldOut: true });
  const ids = (await readScenarios(world.store, prepared)).map(({ id }) => id);
  expect(new Set(ids).size).toBe(30);
  const again = await call(world.activities.prepare, { config: config({ run: 'again' }) });
  const other = await call(world.activities.prepare, { config: config({ run: 'other', seed: 2 }) });
  expect(again).toEqual(prepared);
  expect(other.scenarios.sha256).not.toBe(prepared.scenarios.sha256);
});

test('at most maxScenarios and evalScenarios are read, from endless generators too', async () => {
  function* endless(prefix: string): Generator<Scenario> {
    for (let index = 0; ; index++) yield { id: `${prefix}${index}` };
  }
  const sources = { scenarios: () => endless('t'), evalScenarios: () => endless('e') };
  expect(await prepare(sources, { maxScenarios: 50, evalScenarios: 7 })).toMatchObject({
    trainScenarios: 50,
    evalScenarios: 7,
  });
});

test('prepared again with the same configuration it is the same; with another it says exactly what differs', async () => {
  const prepared = await prepare({});
  expect(await call(world.activities.prepare, { config: config() })).toEqual(prepared);
  const other = config({ steps: 7, train: { lora: { rank: 8 } } });
  await expect(call(world.activities.prepare, { config: other })).rejects.toMatchObject({
    type: 'BadConfig',
    nonRetryable: true,
    message: expect.stringContaining('steps: 100 → 7; train.lora.rank: 16 → 8'),
  });
});

test.each<[string, Partial<AgentDefinition<Scenario>>, string]>([
  ['no scenarios', { scenarios: [] }, 'scenarios of the agent guess must hold at least one, got 0'],
  ['one scenario and nothing to evaluate', { scenarios: [{ id: 'a' }] }, 'at least two'],
  [
    'no evaluation scenarios in a list of them',
    { evalScenarios: [] },
    'evalScenarios of the agent guess must hold at least one',
  ],
  ['an id twice', { scenarios: [{ id: 'a' }, { id: 'a' }] }, 'got "a" at scenarios[0] and scenarios[1]'],
  [
    'an evaluation scenario that is trained',
    { evalScenarios: [{ id: 's3' }] },
    'got "s3" at scenarios[3] and evalScenarios[0]',
  ],
])('%s is refused, and leaves no run behind', async (_name, definition, message) => {
  await expect(prepare(definition)).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringContaining(message),
  });
  expect(existsSync(join(world.root, runKey('demo')))).toBe(false);
});
