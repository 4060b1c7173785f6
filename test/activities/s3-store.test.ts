/** The same activities with a store in a bucket. */
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { evalRolloutsKey, groupJournalPrefix, journalsPrefix, judgedKey, rolloutsKey } from '../../store/layout.ts';
import { AgentResources } from '../../play/resources/agent-resources.ts';
import { endLeases, LeaseWatch } from '../../play/resources/leaked-leases.ts';
import { resource } from '../../sdk/index.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { Leases } from '../../store/records/groups/leases.ts';
import { readRun } from '../../store/records/runs/run-reader.ts';
import { fixturePosition, fixtureState, summary } from '../cli/fixture-store.ts';
import { BUCKET } from '../s3-server.ts';
import { call, evaluateInput, openWorld, rolloutInput } from './world.ts';
import { sharedS3 } from '../shared-s3.ts';
import { temporaryFolder } from '../temporary-folder.ts';

await sharedS3();
const spoolFolder = temporaryFolder();
const bucket = await openStore(`s3://${BUCKET}/activities`, { spoolFolder });
const inFiles = await openWorld();
const inBucket = await openWorld({}, { store: bucket });

test('a run is prepared, played, judged, evaluated and recorded in a bucket with the bytes it has in files', async () => {
  const config = defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket', steps: 3 });
  const outcomes = [];
  for (const { activities, store } of [
    { activities: inFiles.activities, store: inFiles.store },
    { activities: inBucket.activities, store: bucket },
  ]) {
    const prepared = await call(activities.prepare, { config });
    const [rollout, evaluate] = [await rolloutInput(store), await evaluateInput(store)];
    const group = await call(activities.rollout, rollout);
    const evaluation = await call(activities.evaluate, evaluate);
    const keys = [rolloutsKey(rollout), judgedKey(rollout), evalRolloutsKey(evaluate)];
    const files = await Promise.all(
      keys.map(async (key) => Buffer.from((await store.read(key)) ?? []).toString('hex')),
    );
    outcomes.push({ prepared, group, evaluation, files });
  }
  expect(outcomes[1]).toEqual(outcomes[0]);
  expect(outcomes[1]?.files.every((file) => file.length > 0)).toBe(true);
});

test('the journal of a group is in the bucket until its step is long committed', async () => {
  const prefix = groupJournalPrefix(await rolloutInput(bucket));
  const elsewhere = await openStore(bucket.uri, { spoolFolder: join(spoolFolder, 'other-host') });
  const count = async (): Promise<number> => (await elsewhere.openJournal(prefix)).existing.length;
  await expect.poll(count).toBe(1);
  const state = { ...fixtureState('demo', 3), state: 'completed' as const };
  for (const step of [1, 2, 3])
    await call(inBucket.activities.checkpoint, {
      state,
      summary: summary(step, 3),
      position: fixturePosition({ ...state, step }),
    });
  await call(inBucket.activities.record, { state });
  expect(await count()).toBe(0);
  const left = [];
  for await (const key of bucket.list(journalsPrefix('demo'))) left.push(key);
  expect(left).toEqual([]);
  expect(await readRun(bucket, 'demo')).toMatchObject({ state: { state: 'completed', step: 3 } });
});

test('leases are kept, found and ended in a bucket', async () => {
  const leases = new Leases(bucket, 'guess');
  const ended: unknown[] = [];
  const desk = resource({
    scope: 'attempt',
    setup: () => undefined,
    teardown: ({ id, data }) => void ended.push([id, data]),
  });
  const resources = new AgentResources({ agent: 'guess', resources: { desk }, leases });
  const holder = (await resources.holder())!.id;
  const [mine, left] = [holder, 'd'.repeat(16)].map((each) =>
    resources.createLease({ name: 'desk', scope: 'attempt', holder: each, place: null }),
  );
  for (const lease of [mine!, left!]) await leases.open(lease);
  await leases.record(left!, { port: 1 });
  const { leases: seen, deadHolders } = await new LeaseWatch(leases).look();
  const states = Object.fromEntries(seen.map(({ lease, state }) => [lease.id, state]));
  expect(states).toEqual({ [mine!.id]: 'in use', [left!.id]: 'leaked' });
  await endLeases(
    leases,
    { desk },
    seen.filter(({ state }) => state === 'leaked'),
    deadHolders,
  );
  expect(ended).toEqual([[left!.id, { port: 1 }]]);
  expect((await leases.list()).map(({ lease }) => lease)).toEqual([mine]);
  await leases.close(mine!);
  await resources.close();
  expect([await leases.list(), await leases.holders()]).toEqual([[], new Map()]);
});
