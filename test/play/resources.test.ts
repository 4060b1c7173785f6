import { beforeEach, expect, test, vi } from 'vitest';

import type { RolloutContext } from '../../play/agent.ts';
import { AgentResources } from '../../play/resources/agent-resources.ts';
import { endLeases, LeaseWatch } from '../../play/resources/leaked-leases.ts';
import { LeaseHolder } from '../../play/resources/lease-holder.ts';
import type { Resource, ResourceScope, Resources } from '../../play/resources/resource.ts';
import { Leases } from '../../store/records/groups/leases.ts';
import { resource } from '../../sdk/index.ts';
import { markOf, playAttempts, playOne, prepareAttempts, say, type PlayOptions } from './play.ts';
import { sharedEngine } from './shared-engine.ts';
import { temporaryStore } from '../temporary-folder.ts';

const PLACE = { run: 'demo', branch: 0, step: 4, part: '0' };

const engine = await sharedEngine();
let events: string[];
let leases: Leases;
beforeEach(() => {
  events = [];
  leases = new Leases(temporaryStore(), 'test');
});

/** Tells of its setups and teardowns; its value is its name. */
function telling(scope: ResourceScope, name: string, changes: Partial<Resource<string>> = {}): Resource<string> {
  return resource<string>({
    scope,
    setup(context: { scenario?: { id: string } }) {
      events.push(`+ ${name}${context.scenario === undefined ? '' : ` of ${context.scenario.id}`}`);
      return name;
    },
    teardown: (_lease, value) => void events.push(`- ${name}${value === undefined ? ' without a value' : ''}`),
    ...changes,
  } as Parameters<typeof resource<string>>[0]);
}

function owner(needs: Resources): AgentResources {
  return new AgentResources({ agent: 'test', resources: needs, leases });
}

const held = async () => (await leases.list()).map(({ lease }) => lease.resource).toSorted();
const valuesOf = ({ resources }: RolloutContext) => Object.values<unknown>(resources).join(' ');

test.each([
  ['both clocks went on', 60_000, 60_000],
  ['the clock was set back', -3_540_000, 60_000],
  ['the machine was suspended', 60_000, 0],
])('a holder that was silent for a minute knows it: %s', async (_, wallMs, steadyMs) => {
  const holder = new LeaseHolder(leases);
  await holder.renew();
  await leases.removeHolder(holder.id);
  const [wall, steady] = [Date.now() + wallMs, performance.now() + steadyMs];
  const clocks = [vi.spyOn(Date, 'now').mockReturnValue(wall), vi.spyOn(performance, 'now').mockReturnValue(steady)];
  expect(await holder.isHolding()).toBe(false);
  for (const clock of clocks) clock.mockRestore();
});

test('each scope is set up before what needs it, in order, and ended after it, in the opposite order', async () => {
  const needs = {
    own: telling('attempt', 'own'),
    more: telling('attempt', 'more'),
    shared: telling('group', 'shared'),
    server: telling('worker', 'server'),
  };
  const scenarios = ['a', 'a', 'b'].map((id, attempt) => ({
    attempt,
    scenarioIndex: id === 'a' ? 0 : 1,
    scenario: { id },
  }));
  const resources = owner(needs);
  const rollout = async (context: RolloutContext) => {
    events.push(`play ${context.scenario.id} with ${valuesOf(context)}; leases: ${(await held()).join(' ')}`);
    return 1;
  };
  const options: PlayOptions = { needs, resources, leasePlace: PLACE, planned: scenarios, concurrency: 1 };
  await playAttempts(engine, rollout, options);
  const begin = (id: string) => [`+ own of ${id}`, `+ more of ${id}`];
  const played = (id: string) => `play ${id} with server shared own more; leases: more own server shared`;
  const end = ['- more', '- own'];
  const groupOfA = [
    '+ shared of a',
    ...begin('a'),
    played('a'),
    ...end,
    ...begin('a'),
    played('a'),
    ...end,
    '- shared',
  ];
  const groupOfB = ['+ shared of b', ...begin('b'), played('b'), ...end, '- shared'];
  expect(events).toEqual(['+ server', ...groupOfA, ...groupOfB]);
  expect(await held()).toEqual(['server']);
  await resources.close();
  expect(events.at(-1)).toBe('- server');
  expect(await held()).toEqual([]);
  expect(await leases.holders()).toEqual(new Map());
});

test.each([
  ['a failure', () => Promise.reject(new Error('no')), 'failed'],
  ['a deadline', ({ signal }: RolloutContext) => new Promise(() => void signal), 'failed'],
  ['success', () => Promise.resolve(1), 'ok'],
])('an attempt that ends by %s gives its resource back', async (_how, rollout, status) => {
  const needs = { own: telling('attempt', 'own') };
  const played = await playOne(engine, rollout as () => Promise<number>, {
    needs,
    resources: owner(needs),
    rollout: { attemptTimeoutMs: 300 },
  });
  expect(played.status).toBe(status);
  expect(events).toEqual(['+ own of one', '- own']);
  expect(await held()).toEqual([]);
});

test('a cancelled attempt gives its resource back, also in the middle of its setup', async () => {
  const cancelled = new AbortController();
  const needs = {
    first: telling('attempt', 'first'),
    slow: telling('attempt', 'slow', {
      async setup({ signal }) {
        const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
        cancelled.abort();
        await stopped;
        events.push('slow has stopped');
        return 'slow';
      },
    }),
  };
  const playing = playOne(engine, () => 1, { needs, resources: owner(needs), signal: cancelled.signal });
  expect(await markOf(playing)).toMatchObject({ message: 'the attempt was cancelled' });
  expect(events).toEqual(['+ first of one', 'slow has stopped', '- slow', '- first']);
  expect(await held()).toEqual([]);
});

test('a setup that fails is an outage: no attempt is data, and what it had begun is ended', async () => {
  const needs = {
    server: telling('worker', 'server'),
    broken: telling('attempt', 'broken', { setup: () => Promise.reject(new Error('no docker')) }),
  };
  const resources = owner(needs);
  const mark = await markOf(playAttempts(engine, () => 1, { needs, resources, attempts: 3 }));
  expect(mark).toMatchObject({
    type: 'ResourceFailed',
    message: 'the resource broken could not be set up (Error: no docker); mend what its setup needs, or its setup',
  });
  expect(events.filter((event) => event !== '- broken without a value')).toEqual(['+ server']);
  expect(events).toContain('- broken without a value');
  expect(await held()).toEqual(['server']);
  await resources.close();
});

test('progress says how many attempts wait for their resources', async () => {
  const seen: unknown[] = [];
  const look = (): void => void seen.push(attempts.progress().resources);
  const needs = { own: telling('attempt', 'own', { setup: () => (look(), 'own'), teardown: look }) };
  const attempts = prepareAttempts(engine, () => (look(), 1), { needs, resources: owner(needs) });
  await attempts.play();
  look();
  expect(seen).toEqual([{ settingUp: 1, ending: 0 }, undefined, { settingUp: 0, ending: 1 }, undefined]);
});

test('a setup ends at its deadline', async () => {
  const setup = ({ signal }: { signal: AbortSignal }) =>
    new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const needs = { slow: telling('attempt', 'slow', { setup, setupTimeoutMs: 50 }) };
  const mark = await markOf(playOne(engine, () => 1, { needs, resources: owner(needs) }));
  expect(mark.message).toContain('setup may take setupTimeoutMs 50 ms, it took longer');
  expect(events).toEqual(['- slow without a value']);
});

test('a teardown that fails or hangs fails no attempt; its lease stays, and it is tried again', async () => {
  const tried = { failing: 0, hanging: 0 };
  const needs = {
    failing: telling('attempt', 'failing', {
      teardown: () => (tried.failing++ === 0 ? Promise.reject(new Error('busy')) : undefined),
    }),
    hanging: telling('attempt', 'hanging', {
      teardown: () => (tried.hanging++ === 0 ? new Promise(() => undefined) : undefined),
      teardownTimeoutMs: 50,
    }),
  };
  const resources = owner(needs);
  expect(await playOne(engine, () => 1, { needs, resources })).toMatchObject({ status: 'ok', reward: 1 });
  const left = await leases.list();
  expect(left.map(({ lease, failure }) => `${lease.resource}: ${failure?.message}`).toSorted()).toEqual([
    'failing: Error: busy',
    'hanging: Error: teardown may take teardownTimeoutMs 50 ms, it took longer',
  ]);
  await resources.close();
  expect(tried).toEqual({ failing: 2, hanging: 2 });
  expect(await held()).toEqual([]);
});

test('what setup recorded reaches a teardown in another process; it is recorded once, and small', async () => {
  const seen: unknown[] = [];
  const problems: string[] = [];
  const needs = {
    own: telling('attempt', 'own', {
      async setup({ id, record }) {
        await record({ session: id });
        for (const data of ['again', 'x'.repeat(70_000)])
          await record(data).catch((error: unknown) => problems.push((error as Error).message));
        return id;
      },
      teardown: ({ id, data }) => void seen.push([id, data]),
    }),
  };
  let ended: unknown;
  await playOne(
    engine,
    async ({ resources }) => {
      // A worker that plays the same place again does this: it counts the first one as dead.
      await owner(needs).endLeft(PLACE);
      ended = (resources as { own?: string }).own;
      return 1;
    },
    { needs, resources: owner(needs), leasePlace: PLACE },
  );
  // Both may come: teardown is idempotent.
  expect(seen).toEqual(Array.from({ length: 2 }, () => [ended, { session: ended }]));
  expect(ended).toMatch(/^temper[0-9a-f]{16}$/);
  expect(problems).toEqual([
    'the resource own may record data once, but did twice; record all of it in one call',
    expect.stringContaining('may have 65536 bytes as JSON, it has 70'),
  ]);
  expect(await held()).toEqual([]);
});

test('resources are in no recorded byte of an attempt, and a repetition asks the model nothing again', async () => {
  const needs = { own: telling('attempt', 'own') };
  const rollout = async (context: RolloutContext) => Number(await say(context, 'a digit'));
  const plain = await playOne(engine, rollout);
  expect(await playOne(engine, rollout, { needs, resources: owner(needs) })).toEqual(plain);
});

test('without a place for leases, as in a test of an agent, resources are set up and ended all the same', async () => {
  const needs = { server: telling('worker', 'server'), own: telling('attempt', 'own') };
  await playAttempts(engine, (context) => valuesOf(context).length, { needs, attempts: 2, concurrency: 1 });
  expect(events).toEqual(['+ server', '+ own of one', '- own', '+ own of one', '- own', '- server']);
});

test('a process that may have lost its activity discards what it made of resources that a retry has ended', async () => {
  const needs = { own: telling('attempt', 'own') };
  let isFresh = true;
  const rollout = () => {
    isFresh = false;
    return 1;
  };
  const playing = playOne(engine, rollout, { needs, resources: owner(needs), isFresh: () => isFresh });
  expect(await markOf(playing)).toMatchObject({ type: 'StaleAttempt' });
  expect(events).toEqual(['+ own of one', '- own']);
});

/** Leaves a lease of a process, which may be this one. */
async function leave(needs: Resources, holder: string, name = 'own'): Promise<string> {
  const lease = owner(needs).createLease({ name, scope: 'attempt', holder, place: PLACE, scenario: 'a', attempt: 1 });
  await leases.open(lease);
  return lease.id;
}

test('a lease is leaked if its holder left no record, or does not renew it; then it is ended', async () => {
  const needs = { own: telling('attempt', 'own') };
  const [gone, dead, alive] = ['a', 'b', 'c'].map((digit) => digit.repeat(16)) as [string, string, string];
  const ids = [await leave(needs, gone), await leave(needs, dead), await leave(needs, alive)];
  for (const holder of [dead, alive]) await leases.renewHolder(holder, { renewals: 1 });
  const watch = new LeaseWatch(leases);
  const states = async () => {
    const { leases: seen } = await watch.look();
    return ids.map((id) => seen.find(({ lease }) => lease.id === id)?.state);
  };
  expect(await states()).toEqual(['leaked', 'in use', 'in use']);
  await leases.renewHolder(alive, { renewals: 2 });
  expect(await states()).toEqual(['leaked', 'leaked', 'in use']);
  await leases.renewHolder(alive, { renewals: 3 });
  await leave(needs, gone, 'renamed');
  const { leases: seen, deadHolders } = await watch.look();
  expect(deadHolders).toEqual([dead]);
  const leaked = seen.filter(({ state }) => state === 'leaked');
  const ended = await endLeases(leases, needs, leaked, deadHolders);
  expect(ended.map(({ lease, problem }) => `${lease.resource}: ${problem}`).toSorted()).toEqual([
    'own: null',
    'own: null',
    'renamed: the agent has no resource renamed now',
  ]);
  expect(events).toEqual(['- own without a value', '- own without a value']);
  expect(await held()).toEqual(['own', 'renamed']);
  expect([...(await leases.holders()).keys()]).toEqual([alive]);
});

test('a process that was taken for dead discards its attempts, and sets its resources up again', async () => {
  const needs = { server: telling('worker', 'server'), own: telling('attempt', 'own') };
  const resources = owner(needs);
  const rollout = async () => {
    for (const id of (await leases.holders()).keys()) await leases.endHolder(id);
    // Its next renewal finds it out.
    await (await resources.holder())?.renew();
    return 1;
  };
  const mark = await markOf(playOne(engine, rollout, { needs, resources }));
  expect(mark).toMatchObject({ type: 'StaleAttempt' });
  expect(await playOne(engine, () => 1, { needs, resources })).toMatchObject({ status: 'ok' });
  expect(events.filter((event) => event === '+ server')).toHaveLength(2);
  await resources.close();
  expect(await held()).toEqual([]);
});
