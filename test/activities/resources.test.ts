/** Resources as a worker has them: leases in the store, found by the retry of an activity and by nobody's hash. */
import { beforeEach, expect, test } from 'vitest';
import { AgentResources, openAgentResources } from '../../play/resources/agent-resources.ts';
import type { Resources } from '../../play/resources/resource.ts';
import { connectEngine } from '../../play/connections/engine-connection.ts';
import { createAgentActivities } from '../../activities/index.ts';
import { defineAgent, resource } from '../../sdk/index.ts';
import { evalRolloutsKey, rolloutsKey } from '../../store/layout.ts';
import { Leases } from '../../store/records/groups/leases.ts';
import {
  call,
  CODE_SHA256,
  evaluateInput,
  guessing,
  NEVER_PAUSED,
  openWorld,
  readBytes,
  rolloutInput,
  type World,
} from './world.ts';

let world: World;
let events: string[];
beforeEach(async () => {
  events = [];
  world = await openWorld();
});

const needs: Resources = {
  shop: resource({
    scope: 'group',
    setup: ({ scenario }) => void events.push(`+ shop of ${scenario.id}`),
    teardown: ({ data }) => void events.push(`- shop${data === null ? '' : ` ${JSON.stringify(data)}`}`),
  }),
  desk: resource({
    scope: 'attempt',
    setup: () => void events.push('+ desk'),
    teardown: () => void events.push('- desk'),
  }),
};

/** The world's agent, in a worker that gives it resources. */
function activities(): ReturnType<typeof createAgentActivities> {
  const agent = defineAgent({ ...guessing, resources: needs });
  const resources = openAgentResources(agent, world.store);
  const { url, key } = world.engine;
  return createAgentActivities({
    store: world.store,
    engine: connectEngine({ url, key }),
    agents: new Map([[agent.name, { agent, codeSha256: CODE_SHA256, resources }]]),
    logger: { info: () => undefined, warn: () => undefined },
    pauses: NEVER_PAUSED,
  });
}

const leases = () => new Leases(world.store, 'guess');
const count = (event: string) => events.filter((each) => each === event).length;

test('a group has one resource for all of its attempts; its files have the bytes that they have without', async () => {
  await call(activities().rollout, await rolloutInput(world.store, { run: 'with' }));
  expect([count('+ shop of s4'), count('- shop'), count('+ desk'), count('- desk')]).toEqual([1, 1, 6, 6]);
  expect(events.at(-1)).toBe('- shop');
  expect(await leases().list()).toEqual([]);
  const input = await rolloutInput(world.store, { run: 'without' });
  await call(world.activities.rollout, input);
  const [first, second] = ['with', 'without'].map((run) => readBytes(world, rolloutsKey({ ...input, run })));
  expect(first).toBe(second);
});

test('in an evaluation, each scenario has its own resource of the scope group', async () => {
  const input = await evaluateInput(world.store);
  await call(activities().evaluate, input);
  expect(events.filter((event) => event.startsWith('+ shop')).toSorted()).toEqual(
    Array.from({ length: 10 }, (_, index) => `+ shop of s${20 + index}`),
  );
  expect(count('- shop')).toBe(10);
  expect(await world.store.read(evalRolloutsKey(input))).not.toBeNull();
  expect(await leases().list()).toEqual([]);
});

test('a retry first ends what a killed worker held for the group, and leaves other groups alone', async () => {
  const input = await rolloutInput(world.store);
  const killed = new AgentResources({ agent: 'guess', resources: needs, leases: leases() });
  const holder = 'f'.repeat(16);
  for (const part of ['3', '5']) {
    const place = { run: input.run, branch: 0, step: 2, part };
    const lease = killed.createLease({ name: 'shop', scope: 'group', holder, place, scenario: 's4' });
    await leases().open(lease);
    await leases().record(lease, { from: part });
  }
  await call(activities().rollout, input);
  expect(events[0]).toBe('- shop {"from":"3"}');
  expect(events[1]).toBe('+ shop of s4');
  expect((await leases().list()).map(({ lease, data }) => [lease.place?.part, data])).toEqual([['5', { from: '5' }]]);
});

test('a lease that is not as Temper writes it is refused by name: its id goes to a teardown', async () => {
  const input = await rolloutInput(world.store);
  const place = { run: input.run, branch: 0, step: 2, part: '3' };
  const killed = new AgentResources({ agent: 'guess', resources: needs, leases: leases() });
  const lease = killed.createLease({ name: 'shop', scope: 'group', holder: 'f'.repeat(16), place });
  await leases().open(lease);
  const [key] = await keysOf();
  await world.store.replace(key!, Buffer.from(JSON.stringify({ ...lease, id: '--all' })));
  await expect(call(activities().rollout, input)).rejects.toThrow(`${key} is not as Temper writes it (id:`);
  expect(events).toEqual([]);
});

async function keysOf(): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of world.store.describe('leases')) if (key.endsWith('/lease.json')) keys.push(key);
  return keys;
}
