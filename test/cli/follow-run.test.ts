/** A run as a command sees it that watches it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { followRun } from '../../cli/watch/follow-run.ts';
import { TemperError } from '../../core/contract/failures.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { branchKey, stateKey } from '../../store/layout.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import { fixtureState, summary, temporaryProject, writeFixtureRun } from './fixture-store.ts';

async function follow(project: string) {
  const store = new FileStore(join(project, '.temper', 'store'));
  const looks = followRun(store, 'demo', new AbortController().signal);
  return { store, look: async () => (await looks.next()).value! };
}

test('a run that comes back to the same step on another branch is read anew', async () => {
  const project = temporaryProject();
  const own = await writeFixtureRun(project, { steps: 2, state: { state: 'running' } });
  const { look } = await follow(project);
  expect(await look()).toMatchObject({ seen: { steps: [{ reward: summary(1, 2).reward }, {}] } });
  const back = { schema: 1, branch: 1, fromBranch: 0, fromStep: 1, requestId: 'back' };
  await own.publish(branchKey('demo', 1), encodeJson(back));
  await addToCurve(own, 'demo', { branch: 1, step: 2 }, [{ ...summary(2, 2), reward: 7 }], () => undefined);
  await own.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 2), state: 'running', branch: 1 }));
  expect(await look()).toMatchObject({ seen: { steps: [{}, { reward: 7 }] } });
});

test('an outage of the store is told, and followed by what the store has then', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 1 });
  const { store, look } = await follow(project);
  const read = store.read.bind(store);
  store.read = () => Promise.reject(new TemperError('StoreUnavailable', 'the disk is away'));
  expect(await look()).toEqual({ away: 'the disk is away' });
  store.read = read;
  expect(await look()).toMatchObject({ seen: { state: { step: 1 }, steps: [{ step: 1 }] } });
});

test('a damaged file of the run ends the command', async () => {
  const project = temporaryProject();
  const own = await writeFixtureRun(project, { steps: 1 });
  await own.replace(stateKey('demo'), new TextEncoder().encode('{'));
  const { look } = await follow(project);
  await expect(look()).rejects.toMatchObject({ type: 'StoreCorrupt' });
});
