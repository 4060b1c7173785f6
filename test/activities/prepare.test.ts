import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';

import { Prepared, type RunConfig } from '../../core/contract/contract.ts';
import { defaultRunConfig, type RunOptions } from '../../core/rules/run-defaults.ts';
import type { Scenario } from '../../play/agent.ts';
import { hubSource } from '../../play/sources/hub.ts';
import type { AgentDefinition } from '../../sdk/agent/define-agent.ts';
import { encodeJsonLines } from '../../store/bytes/json.ts';
import { runKey, scenariosKey } from '../../store/layout.ts';
import { listRuns, readPrepared, readRun, readStoredScenarios } from '../../store/records/runs/run-reader.ts';
import { REVISION, startRowsService } from '../play/sources/rows-service.ts';
import { call, openWorld, type World } from './world.ts';

let world: World;

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
  const lines = await readStoredScenarios(world.store, prepared);
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
  const ids = (await readStoredScenarios(world.store, prepared)).map(({ id }) => id);
  expect(new Set(ids).size).toBe(30);
  const again = await call(world.activities.prepare, { config: config({ run: 'again' }) });
  const other = await call(world.activities.prepare, { config: config({ run: 'other', seed: 2 }) });
  expect(again).toEqual(prepared);
  expect(other.scenarios.sha256).not.toBe(prepared.scenarios.sha256);
});

test('a sample of evaluation scenarios is spread over the field that the agent names', async () => {
  const evalScenarios = Array.from({ length: 60 }, (_, index) => ({ id: `e${index}`, label: index < 57 ? 'a' : 'b' }));
  const prepared = await prepare({ evalScenarios, spreadBy: 'label' }, { evalScenarios: 6 });
  const held = (await readStoredScenarios(world.store, prepared)).slice(-6) as { scenario: { label: string } }[];
  expect(held.map(({ scenario }) => scenario.label)).toEqual(['a', 'a', 'a', 'b', 'b', 'b']);
  await expect(prepare({ evalScenarios, spreadBy: 'queue' })).rejects.toThrow('"e0" has no queue; name another one');
});

test('at most maxScenarios and evalScenarios are read, from endless generators too', async () => {
  function* endless(prefix: string): Generator<Scenario> {
    for (let index = 0; ; index++) yield { id: `${prefix}${index}` };
  }
  const sources = { scenarios: () => endless('t'), evalScenarios: () => endless('e') };
  const prepared = await prepare(sources, { maxScenarios: 50, evalScenarios: 7 });
  expect(prepared).toMatchObject({
    trainScenarios: 50,
    evalScenarios: 7,
    evalScenariosOf: 10_000,
  });
  const held = (await readStoredScenarios(world.store, prepared)).slice(-7);
  const numbers = held.map(({ id }) => Number(id.slice(1)));
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(numbers.at(-1)).toBeGreaterThan(5000);
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

describe('a fork without evaluation scenarios', () => {
  const scenarios = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => ({ id: `s${from + index}` }));
  const parent = { run: 'demo', branch: 0, step: 1, manifestSha256: '4'.repeat(64), adapterSha256: '5'.repeat(64) };
  const list: { id: string }[] = [];

  /** The ids that a run holds out, of a list that may have changed since the run before. */
  async function heldOut(run: string, listed: { id: string }[], options: Partial<RunOptions> = {}): Promise<string[]> {
    list.splice(0, list.length, ...listed);
    const prepared = await call(world.activities.prepare, { config: config({ run, ...options }) });
    const lines = await readStoredScenarios(world.store, prepared);
    return lines.slice(prepared.trainScenarios).map(({ id }) => id);
  }

  beforeEach(async () => {
    world = await openWorld({ scenarios: () => [...list] });
  });

  test('holds out what its parent held out, whatever its seed', async () => {
    const held = await heldOut('demo', scenarios(0, 30));
    expect(await heldOut('fork', scenarios(0, 30), { parent, seed: 9 })).toEqual(held);
    expect(await heldOut('fresh', scenarios(0, 30), { seed: 9 })).not.toEqual(held);
    expect((await readRun(world.store, 'fork'))?.file.parent).toEqual(parent);
  });

  test('fills up with scenarios that its parent never saw, and never with those it was trained on', async () => {
    const held = await heldOut('demo', scenarios(0, 30));
    const grown = await heldOut('fork', scenarios(0, 60), { parent, seed: 9 });
    expect(grown).toHaveLength(6);
    expect(grown).toEqual(expect.arrayContaining(held));
    const trained = scenarios(0, 30).flatMap(({ id }) => (held.includes(id) ? [] : [id]));
    expect(grown.filter((id) => trained.includes(id))).toEqual([]);
  });

  test('holds out what the run before the examples held out, where its parent trained examples alone', async () => {
    const chat = { messages: ['user', 'assistant'].map((role) => ({ role, content: 'hello' })) };
    const dataset = await world.store.putBlob(encodeJsonLines([chat, chat]));
    const rendering = { dataset, turns: 'all', overlong: 'mask' } as const;
    const supervised = { ...rendering, examples: 2, heldOut: 1, examplesPerStep: 1 };
    const held = await heldOut('demo', scenarios(0, 30));
    await call(world.activities.prepare, { config: config({ run: 'chats', parent, supervised }) });
    const ofChats = { ...parent, run: 'chats' };
    expect(await heldOut('fork', scenarios(0, 30), { parent: ofChats, seed: 9 })).toEqual(held);
    await call(world.activities.prepare, { config: config({ run: 'alone', supervised }) });
    expect(await heldOut('first', scenarios(0, 30), { parent: { ...parent, run: 'alone' } })).toHaveLength(3);
  });

  test('is refused where its parent was trained on every scenario', async () => {
    const held = await heldOut('demo', scenarios(0, 30));
    const seen = scenarios(0, 30).filter(({ id }) => !held.includes(id));
    await expect(heldOut('fork', seen, { parent })).rejects.toMatchObject({
      type: 'BadConfig',
      message: expect.stringContaining(
        'must hold at least one that the parent was not trained on, but it was trained on all 27',
      ) as string,
    });
  });
});

test('the revision of a data set that scenarios were read from is recorded', async () => {
  const rows = Array.from({ length: 5 }, (_, index) => ({ id: `s${index}` }));
  const service = await startRowsService({ splits: [{ config: 'main', split: 'train', rows }] });
  const prepared = await prepare({ scenarios: hubSource('owner/name', {}, service.env(join(world.root, 'cache'))) });
  await service.close();
  const read = { dataset: 'owner/name', config: 'main', split: 'train', revision: REVISION };
  expect(Prepared.parse(prepared)).toMatchObject({ trainScenarios: 4, evalScenarios: 1, datasets: [read] });
  expect(await readPrepared(world.store, 'demo')).toEqual(prepared);
});

test('a loss that has no effect is refused', async () => {
  world = await openWorld({});
  const { train, ...others } = config();
  const ppo = {
    ...others,
    train: { ...train, loss: { name: 'ppo' as const, epsilonLow: 0.2, epsilonHigh: 0.28, dualClip: 3 } },
  };
  await expect(call(world.activities.prepare, { config: ppo })).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringContaining('loss.name ppo'),
  });
  expect(await listRuns(world.store)).toEqual([]);
});
