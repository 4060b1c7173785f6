/** Views of runs: rows, one run, curves along branches, comparison. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunState } from '../../core/contract/contract.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import * as layout from '../../store/layout.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import { readRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { CompareView, CurveView, RunRow, RunView } from '../../views/api/run-views.ts';
import { NotFound, type ViewContext } from '../../views/context/context.ts';
import { openAttemptIndex } from '../../views/index/open-index.ts';
import { VIEW_ROUTES } from '../../views/routes/routes.ts';
import { settingName } from '../../views/runs/compare.ts';
import { evaluation, fixtureState, summary, writeFixtureRun } from '../cli/fixture-store.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { temporaryFolder } from '../temporary-folder.ts';

function contextOf(store: Store, folder: string | null = null): ViewContext {
  return {
    store,
    index: openAttemptIndex(store, folder),
    readVocabulary: () => Promise.resolve(null),
    now: () => Date.parse('2026-11-27T12:00:00Z'),
    cacheFolder: folder,
  };
}

async function answer<T>(context: ViewContext, path: string, query = ''): Promise<T> {
  const [, run = ''] = path.split('/');
  const route = VIEW_ROUTES.find((each) => each.path === path.replace(run === '' ? '//' : `/${run}`, '/:run'))!;
  return (await route.answer(context, { run }, new URLSearchParams(query))) as T;
}

const OPTIONS = { steps: 6 } as const;

/** Branch 1 takes over after step 4 of a run of 6 steps, and has got to step 7. */
async function rollBack(store: Store, run: string): Promise<void> {
  const lineage = [{ branch: 1, fromBranch: 0, fromStep: 4 }];
  await store.publish(layout.branchKey(run, 1), encodeJson({ schema: 1, requestId: 'r', ...lineage[0] }));
  const steps = [5, 6, 7].map((step) => ({ ...summary(step, 8), reward: 10 + step }));
  await addToCurve(store, run, { branch: 1, step: 7 }, steps, () => undefined);
  for (const step of [5, 6, 7])
    await store.publish(layout.manifestKey({ run, branch: 1, step }), encodeJson(madeManifest({ branch: 1, step })));
  for (const step of [0, 4, 5, 6])
    await store.publish(layout.manifestKey({ run, branch: 0, step }), encodeJson(madeManifest({ branch: 0, step })));
  const state: Partial<RunState> = { branch: 1, step: 7, steps: 8, state: 'running', lineage, phase: 'rollout' };
  await store.replace(layout.stateKey(run), encodeJson({ ...fixtureState(run, 7), ...state }));
}

test('a row tells state, progress and rewards as the store has them', async () => {
  const store = await writeFixtureRun(temporaryFolder(), OPTIONS);
  const times = { committedAt: '2026-11-27T10:00:00.000Z' };
  await store.replace(layout.manifestTimesKey({ run: 'demo', branch: 0, step: 6 }), encodeJson(times));
  const [row] = await answer<RunRow[]>(contextOf(store), 'runs');
  const { steps, state } = (await readRun(store, 'demo'))!;
  expect(row).toEqual({
    run: 'demo',
    agent: 'tic-tac-toe',
    baseModel: 'pocket',
    state: 'completed',
    step: 6,
    steps: 6,
    reward: state!.reward,
    heldOut: { label: 'win', value: 0.925, before: 0.51, step: 6 },
    sparkline: steps.map(({ reward }) => reward),
    waitingFor: null,
    waitingSince: null,
    updatedAt: times.committedAt,
    wallSeconds: 151.5,
    usd: null,
    awaited: 0,
    host: null,
    advisories: 0,
    parent: null,
  });
});

test('a sparkline has the first and the last reward, and at most 60', async () => {
  const store = await writeFixtureRun(temporaryFolder(), { steps: 0 });
  const steps = Array.from({ length: 250 }, (_, index) => summary(index + 1, 250));
  await addToCurve(store, 'demo', { branch: 0, step: 250 }, steps, () => undefined);
  await store.replace(layout.stateKey('demo'), encodeJson({ ...fixtureState('demo', 250), evals: [] }));
  const [row] = await answer<RunRow[]>(contextOf(store), 'runs');
  expect(row!.sparkline).toHaveLength(60);
  expect([row!.sparkline[0], row!.sparkline[59]]).toEqual([steps[0]!.reward, steps[249]!.reward]);
});

test('a run that stopped writing is stalled, and tells since when it waits', async () => {
  const waitingFor = 'rollout on queue temper.rollout.1, since 2026-11-27T10:30:00.000Z';
  const state = { state: 'running', phase: 'rollout', step: 6, steps: 9, waitingFor } as const;
  const store = await writeFixtureRun(temporaryFolder(), { ...OPTIONS, state });
  const times = { endedAt: Date.parse('2026-11-27T11:00:00Z'), host: 'worker-3' };
  await store.replace(layout.groupTimesKey({ run: 'demo', branch: 0, step: 7, group: 2 }), encodeJson(times));
  const context = contextOf(store);
  const [row] = await answer<RunRow[]>(context, 'runs');
  expect(row).toMatchObject({
    waitingFor,
    waitingSince: '2026-11-27T10:30:00.000Z',
    updatedAt: '2026-11-27T11:00:00.000Z',
    host: 'worker-3',
    advisories: 1,
  });
  const { advisories } = await answer<RunView>(context, 'runs/demo');
  expect(advisories).toMatchObject([{ kind: 'stalled', text: expect.stringMatching(/^step 7 .* for 1 h 0 min/) }]);
});

test('a paused run waits since its pause', async () => {
  const pause = { since: '2026-11-26T08:00:00.000Z', reason: null };
  const state = { state: 'paused', pause, waitingFor: 'temper resume demo; paused since then' } as const;
  const store = await writeFixtureRun(temporaryFolder(), { ...OPTIONS, state });
  expect((await answer<RunRow[]>(contextOf(store), 'runs'))[0]!.waitingSince).toBe(pause.since);
});

test('a run that cannot be read hides no other, and a folder without run.json is none', async () => {
  const folder = temporaryFolder();
  const store = await writeFixtureRun(folder, OPTIONS);
  await writeFixtureRun(folder, { ...OPTIONS, run: 'other' });
  await store.replace(layout.runKey('broken'), Buffer.from('{"schema":1}'));
  await store.replace('runs/stray/note.txt', Buffer.from('x'));
  expect((await answer<RunRow[]>(contextOf(store), 'runs')).map(({ run }) => run)).toEqual(['demo', 'other']);
});

test('what is known of a curve is kept in the cache, and read anew once the run has gone on', async () => {
  const [folder, cache] = [temporaryFolder(), temporaryFolder()];
  const store = await writeFixtureRun(folder, OPTIONS);
  const [first] = await answer<RunRow[]>(contextOf(store, cache), 'runs');
  // The curve is gone, so a second process can know it from the cache alone.
  await store.removeFolder(layout.curvePrefix('demo'));
  const again = await writeFixtureStoreAgain(folder);
  expect((await answer<RunRow[]>(contextOf(again, cache), 'runs'))[0]).toEqual(first);
  await addToCurve(store, 'demo', { branch: 0, step: 7 }, [summary(7, 8)], () => undefined);
  await store.replace(
    layout.stateKey('demo'),
    encodeJson({ ...fixtureState('demo', 7), adapterSha256: 'f'.repeat(64) }),
  );
  expect((await answer<RunRow[]>(contextOf(again, cache), 'runs'))[0]!.sparkline).toEqual([summary(7, 8).reward]);
});

/** Another process opens the same store. */
async function writeFixtureStoreAgain(folder: string): Promise<Store> {
  const { openStore } = await import('../../store/bytes/open-store.ts');
  return openStore(join(folder, '.temper', 'store'));
}

test('a run shows its configuration, changes, branches, ancestors and forks', async () => {
  const folder = temporaryFolder();
  const store = await writeFixtureRun(folder, OPTIONS);
  await rollBack(store, 'demo');
  const change = { setting: 'learningRate', from: 0.1, to: 0.01, branch: 1, step: 6, reason: 'why' } as const;
  await store.publish(layout.changesKey('demo', 1), encodeJson({ schema: 1, changes: [change] }));
  const parent = { run: 'demo', branch: 0, step: 3, manifestSha256: 'a'.repeat(64), adapterSha256: 'b'.repeat(64) };
  await writeFixtureRun(folder, { ...OPTIONS, run: 'child' });
  const file = (await readRun(store, 'child'))!.file;
  await store.replace(layout.runKey('child'), encodeJson({ ...file, config: { ...file.config, parent }, parent }));

  const view = await answer<RunView>(contextOf(store), 'runs/demo');
  expect(view.changes).toEqual([change]);
  expect(view.config.agent).toBe('tic-tac-toe');
  expect(view.versions).toEqual({ temper: '0.1.0' });
  expect(view.lineage).toEqual([
    { id: 'demo/0', run: 'demo', branch: 0, from: null, step: 6, state: 'stopped' },
    { id: 'demo/1', run: 'demo', branch: 1, from: { id: 'demo/0', step: 4 }, step: 7, state: 'running' },
    { id: 'child/0', run: 'child', branch: 0, from: { id: 'demo/0', step: 3 }, step: 6, state: 'completed' },
  ]);
  // A fork goes on while its parent is looked at.
  await store.replace(layout.stateKey('child'), encodeJson({ ...(await readRun(store, 'child'))!.state, step: 5 }));
  expect((await answer<RunView>(contextOf(store), 'runs/demo')).lineage.at(-1)).toMatchObject({
    run: 'child',
    step: 5,
  });
  const child = await answer<RunView>(contextOf(store), 'runs/child');
  expect(child.row.parent).toBe('demo@3');
  expect(child.lineage.map(({ id }) => id)).toEqual(['demo/1', 'child/0']);
});

test('a curve follows the newest branch with what is before it, or the branch that is asked for', async () => {
  const store = await writeFixtureRun(temporaryFolder(), OPTIONS);
  await store.publish(layout.evalKey({ run: 'demo', branch: 0, step: 6 }), encodeJson(evaluation(6, 0.5, 0.1)));
  await rollBack(store, 'demo');
  const context = contextOf(store);
  const newest = await answer<CurveView>(context, 'runs/demo/curve');
  expect(newest.steps.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(newest.steps.slice(4).map(({ reward }) => reward)).toEqual([15, 16, 17]);
  expect(newest.parts).toEqual([
    { branch: 0, fromStep: 1 },
    { branch: 1, fromStep: 5 },
  ]);
  const old = await answer<CurveView>(context, 'runs/demo/curve', 'branch=0');
  expect(old.steps.map(({ reward }) => reward)).toEqual([1, 2, 3, 4, 5, 6].map((step) => summary(step, 6).reward));
  // Step 7's is of the newest branch.
  expect(newest.evals.map(({ step }) => step)).toEqual([0, 7]);
  expect(old.evals.map(({ step }) => step)).toEqual([0, 6]);
  expect(old.parts).toEqual([{ branch: 0, fromStep: 1 }]);
  const after = await answer<CurveView>(context, 'runs/demo/curve', 'after=5');
  expect(after.steps.map(({ step }) => step)).toEqual([6, 7]);
});

test('a curve that grows is read on, and one that went back is read anew', async () => {
  const store = await writeFixtureRun(temporaryFolder(), OPTIONS);
  const context = contextOf(store);
  const steps = async () => (await answer<CurveView>(context, 'runs/demo/curve')).steps.map(({ step }) => step);
  expect(await steps()).toEqual([1, 2, 3, 4, 5, 6]);
  await addToCurve(store, 'demo', { branch: 0, step: 7 }, [summary(7, 8)], () => undefined);
  expect(await steps()).toEqual([1, 2, 3, 4, 5, 6]);
  await store.replace(layout.stateKey('demo'), encodeJson({ ...fixtureState('demo', 7), evals: [] }));
  expect(await steps()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  await rollBack(store, 'demo');
  expect((await answer<CurveView>(context, 'runs/demo/curve')).steps[4]!.reward).toBe(15);
});

test('a comparison has the curves, and the settings that differ under the names of their flags', async () => {
  const folder = temporaryFolder();
  const store = await writeFixtureRun(folder, OPTIONS);
  await writeFixtureRun(folder, { ...OPTIONS, run: 'other' });
  const file = (await readRun(store, 'other'))!.file;
  const train = { ...file.config.train, lora: { ...file.config.train.lora!, rank: 4 } };
  await store.replace(
    layout.runKey('other'),
    encodeJson({ ...file, config: { ...file.config, judge: 'openai/x', train } }),
  );
  const change = { setting: 'groupSize', from: 8, to: 12, branch: 0, step: 3, reason: null } as const;
  await store.publish(layout.changesKey('other', 1), encodeJson({ schema: 1, changes: [change] }));
  const view = await answer<CompareView>(contextOf(store), 'compare', 'runs=demo,other');
  expect(view.curves.map(({ run, steps }) => [run, steps.length])).toEqual([
    ['demo', 6],
    ['other', 6],
  ]);
  expect(view.settings).toEqual([
    { setting: 'group-size', values: ['8', '12'] },
    { setting: 'judge', values: ['none', 'openai/x'] },
    { setting: 'lora-rank', values: ['16', '4'] },
  ]);
});

test('settings have the names of their flags, or of their fields where no flag sets them', () => {
  expect(settingName('rollout.temperature')).toBe('temperature');
  expect(settingName('train.optimizer.weightDecay')).toBe('weight-decay');
  expect(settingName('agent')).toBe('agent');
});

test('what there is not is not found, and a wrong parameter is refused', async () => {
  const store = await writeFixtureRun(temporaryFolder(), OPTIONS);
  const context = contextOf(store);
  await expect(answer(context, 'runs/absent')).rejects.toThrow(NotFound);
  await expect(answer(context, 'runs/absent')).rejects.toThrow('has no run absent; its runs: demo');
  await expect(answer(context, 'runs/demo/curve', 'branch=3')).rejects.toThrow('no branch 3');
  await expect(answer(context, 'runs/demo/curve', 'after=-1')).rejects.toThrow('after must be a whole number from 0');
  await expect(answer(context, 'runs/absent/attempts')).rejects.toThrow(NotFound);
  await expect(answer(context, 'compare', 'runs=demo')).rejects.toThrow('runs must be 2 to 6 names');
  await expect(answer(context, 'compare', 'runs=demo,absent')).rejects.toThrow(NotFound);
});
