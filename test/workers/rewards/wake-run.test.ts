/** Runs are told only if a group is complete and not decided: each time makes their history longer. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { beforeEach, expect, test } from 'vitest';

import { encodeJson } from '../../../store/bytes/json.ts';
import type { FileStore } from '../../../store/bytes/file-store.ts';
import { stateKey } from '../../../store/layout.ts';
import { closeLedger } from '../../../store/records/rewards/given-rewards.ts';
import { openGiver } from '../../../store/records/rewards/give-reward.ts';
import { wakeIfComplete, wakeRun, wakeWaitingRuns } from '../../../workers/rewards/wake-run.ts';
import { fixtureState } from '../../cli/fixture-store.ts';
import { awaitRewards } from '../../cli/review/awaited-run.ts';
import { temporaryStore } from '../../temporary-folder.ts';

let store: FileStore;
let told: string[];
beforeEach(async () => {
  store = temporaryStore();
  told = [];
  await awaitRewards(store);
});

function clientThat(signal: (id: string, name: string) => Promise<void>): Client {
  const getHandle = (id: string) => ({ signal: (name: string) => signal(id, name) });
  return { workflow: { getHandle }, withDeadline: (_at: number, ask: () => unknown) => ask() } as never;
}
const client = clientThat(async (id, name) => void told.push(`${name} ${id.split('/').at(-1)}`));

async function completeGroup1(): Promise<void> {
  const giver = await openGiver(store, 'demo');
  for (const attempt of ['0.1.1.0', '0.1.1.1', '0.1.1.2']) await giver.give({ attempt, reward: 1 });
}

test('a run is told once a group is complete, and not after it was decided', async () => {
  expect(await wakeIfComplete(client, store, 'demo')).toBe(false);
  await completeGroup1();
  expect(await wakeIfComplete(client, store, 'demo')).toBe(true);
  expect(told).toEqual(['rewards demo']);
  await closeLedger(store, { run: 'demo', branch: 0, step: 1, group: 1 }, 'complete');
  expect(await wakeIfComplete(client, store, 'demo')).toBe(false);
});

test('a starting worker tells the runs of its agents that go on', async () => {
  await completeGroup1();
  expect(await wakeWaitingRuns(client, store, [])).toEqual([]);
  expect(await wakeWaitingRuns(client, store, ['other'])).toEqual([]);
  expect(await wakeWaitingRuns(client, store, ['other', 'toy'])).toEqual(['demo']);
  await store.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 1), state: 'cancelled' }));
  expect(await wakeWaitingRuns(client, store, ['toy'])).toEqual([]);
  expect(told).toEqual(['rewards demo']);
});

test('a run that no server runs is no error; a server that refuses is one', async () => {
  const absent = clientThat(() => Promise.reject(new WorkflowNotFoundError('none', 'run/s/demo', undefined)));
  expect(await wakeRun(absent, 's', 'demo')).toBe(false);
  const refusing = clientThat(() => Promise.reject(new Error('refused')));
  await expect(wakeRun(refusing, 's', 'demo')).rejects.toThrow('refused');
});
