/** A run that is deleted whole: what may go, what stays, and what readers say when the command is killed in between. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';

import { defaultRunConfig } from '../../../../core/rules/run-defaults.ts';
import { FileStore } from '../../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import * as layout from '../../../../store/layout.ts';
import { copyRun } from '../../../../store/records/copy/copy-run.ts';
import { deleteRun, planRunDeletion } from '../../../../store/records/retention/delete-run.ts';
import { planGarbage } from '../../../../store/records/retention/garbage.ts';
import { publishRun } from '../../../../store/records/runs/publish-run.ts';
import { listRuns, readState, requireRun } from '../../../../store/records/runs/run-reader.ts';
import { planPrune } from '../../../../store/records/retention/prune.ts';
import { recordSchedule } from '../../../../store/records/production/schedules.ts';
import { DEAD_MS, ServerRecord } from '../../../../store/records/production/servers.ts';
import { verifyRun } from '../../../../store/records/verify/verify-run.ts';
import { makeRun } from '../made-run.ts';
import { record, recordedCall } from '../recorded.ts';
import { temporaryFolder, temporaryStore } from '../../../temporary-folder.ts';

let root: string;
let store: FileStore;
beforeEach(() => {
  root = temporaryFolder();
  store = new FileStore(root);
});

const files = (folder = ''): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);

async function setState(run: string, state: string): Promise<void> {
  const known = await readState(store, 'demo');
  await store.replace(layout.stateKey(run), encodeJson({ ...known, run, state }));
}

test('a run that has ended goes with all that only it names; another run keeps what it shares', async () => {
  await makeRun(store, { steps: 2 });
  await makeRun(store, { run: 'other', steps: 1 });
  const plan = await planRunDeletion(store, 'demo');
  expect(await deleteRun(store, 'demo')).toEqual(plan);
  expect(await listRuns(store)).toEqual(['other']);
  expect((await verifyRun(store, 'other')).findings.problems).toEqual([]);
  expect((await planGarbage(store, Date.now() + 86_400_000)).objects).toEqual([]);
  await deleteRun(store, 'other');
  expect(files()).toEqual([]);
});

test('a run in progress, and one whose checkpoint is about to be used, are refused whole', async () => {
  const { positions } = await makeRun(store, { steps: 1 });
  const before = files();
  await setState('demo', 'running');
  await expect(deleteRun(store, 'demo')).rejects.toThrow('cannot be deleted (it has not ended)');
  await setState('demo', 'stopped');
  const { parent } = positions[1]!;
  const config = defaultRunConfig({ run: 'nightly', agent: 'toy', baseModel: 'pocket', steps: 1 });
  await recordSchedule(store, 'nightly', { config, from: parent });
  await expect(deleteRun(store, 'demo')).rejects.toThrow('demo@1: the schedule nightly begins with it');
  rmSync(join(root, 'schedules'), { recursive: true });
  const fork = defaultRunConfig({ run: 'child', agent: 'toy', baseModel: 'pocket', steps: 1, parent });
  await publishRun(store, { config: fork, agentCodeSha256: 'a'.repeat(64) });
  await expect(deleteRun(store, 'demo')).rejects.toThrow('demo@1: the run child begins with it');
  rmSync(join(root, 'runs/child'), { recursive: true });
  await expect(deleteRun(store, 'nope')).rejects.toThrow('no run nope');
  expect(files().toSorted()).toEqual(before.toSorted());
});

test('what is served, recorded or promoted stays, unless it is said that it may go', async () => {
  await makeRun(store, { steps: 5 });
  const server = new ServerRecord({ store, command: 'temper serve', records: 'demo', warn: expect.unreachable });
  await server.show(['demo@2']);
  const { kept } = await planPrune(store, 'demo', { keepLast: 1, keepBest: [], keepEvery: null });
  const reason = (step: number) => kept.find(({ checkpoint }) => checkpoint.step === step)?.because;
  expect([reason(1), reason(2)]).toEqual([
    undefined,
    expect.stringMatching(/^temper serve \(process \d+ on .*serves it/),
  ]);
  await expect(deleteRun(store, 'demo')).rejects.toThrow('demo@2: temper serve');
  await server.show([]);
  await expect(deleteRun(store, 'demo', true)).rejects.toThrow('records under its name');
  await server.end();
  await record(store, 'demo', [{ call: recordedCall('a'.repeat(64)), policy: 'demo@3' }]);
  const recorded = (await planPrune(store, 'demo', { keepLast: 1, keepBest: [], keepEvery: null })).kept;
  expect(recorded.map(({ because }) => because)).toContain('it answered last in the recordings of demo');
  await expect(deleteRun(store, 'demo')).rejects.toThrow('pass --with-production');
  await deleteRun(store, 'demo', true);
  expect(files()).toEqual([]);
});

test('a server that was killed counts as gone after a while', async () => {
  await makeRun(store, { steps: 1 });
  await new ServerRecord({ store, command: 'temper ui', records: null, warn: expect.unreachable }).show(['demo@1']);
  await expect(deleteRun(store, 'demo')).rejects.toThrow('temper ui');
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 2 * DEAD_MS);
  await deleteRun(store, 'demo');
  vi.restoreAllMocks();
});

test('one that is continued while it is being looked at stays', async () => {
  const { config } = await makeRun(store, { steps: 1 });
  const publish = store.publish.bind(store);
  vi.spyOn(store, 'publish').mockImplementation(async (key, bytes) => {
    await setState('demo', 'running');
    return publish(key, bytes);
  });
  await expect(deleteRun(store, 'demo')).rejects.toThrow('it has not ended');
  await expect(requireRun(store, 'demo')).resolves.toBeDefined();
  vi.restoreAllMocks();
  expect((await publishRun(store, { config, agentCodeSha256: 'a'.repeat(64) })).differences).toEqual([]);
  expect((await verifyRun(store, 'demo')).findings.problems).toEqual([]);
});

test('blobs of weights that a run in progress makes as well are left alone', async () => {
  await makeRun(store, { steps: 2 });
  await makeRun(store, { run: 'twin', steps: 1 });
  await setState('twin', 'running');
  const { blobs, leftBecause } = await deleteRun(store, 'demo');
  expect([blobs, leftBecause]).toEqual([[], 'the run twin in progress has some of the same weights']);
  await setStateOf('twin', 'stopped');
  expect((await planGarbage(store, Date.now() + 86_400_000)).objects.length).toBeGreaterThan(0);
});

async function setStateOf(run: string, state: string): Promise<void> {
  const known = await readState(store, run);
  await store.replace(layout.stateKey(run), encodeJson({ ...known, state }));
}

test.each(['removeUnchanged', 'removeFolder'] as const)(
  'killed at %s, it is told as being deleted, its name is not taken again, and a second call does the rest',
  async (method) => {
    const { config } = await makeRun(store, { steps: 1 });
    vi.spyOn(store, method).mockRejectedValueOnce(new Error('killed'));
    await expect(deleteRun(store, 'demo')).rejects.toThrow('killed');
    vi.restoreAllMocks();
    await expect(publishRun(store, { config, agentCodeSha256: 'a'.repeat(64) })).rejects.toThrow('is being deleted');
    if (method === 'removeFolder') {
      expect(await listRuns(store)).toEqual([]);
      await expect(requireRun(store, 'demo')).rejects.toThrow('temper checkpoints delete demo --all');
    }
    await deleteRun(store, 'demo');
    expect(files()).toEqual([]);
    await publishRun(store, { config, agentCodeSha256: 'a'.repeat(64) });
  },
);

test('no copy of it arrives while it is being deleted', async () => {
  const other = temporaryStore();
  await makeRun(other, { steps: 1 });
  await makeRun(store, { steps: 1 });
  vi.spyOn(store, 'removeFolder').mockRejectedValueOnce(new Error('killed'));
  await expect(deleteRun(store, 'demo')).rejects.toThrow('killed');
  const { signal } = new AbortController();
  const options = { isThorough: false, withPruned: false, signal, onStep: () => undefined };
  await expect(copyRun(other, store, 'demo', options)).rejects.toThrow('is being deleted');
});
