import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { TrackerSettings, type TrackerKind } from '../../../core/contract/outbound.ts';
import type { Target } from '../../../outbound/target.ts';
import { findOrMakeExperiment, openMlflow } from '../../../outbound/track/mlflow.ts';
import { metricsOfStep } from '../../../outbound/track/metric-names.ts';
import { openTracker } from '../../../outbound/track/open-tracker.ts';
import { trackioCaller } from '../../../outbound/track/trackio.ts';
import { readCursor } from '../../../store/records/production/outbound-cursor.ts';
import { seededFaults, type Fault, type StandIn } from '../stand-in.ts';
import { startMlflow, type MlflowStandIn } from './mlflow-stand-in.ts';
import { BEGAN_AT, expectResultFirst, startTrackedRun, deliverAll, type TrackedRun } from './tracked-run.ts';
import { startTrackio, type TrackioStandIn } from './trackio-stand-in.ts';
import { startWandb, type WandbStandIn } from './wandb-stand-in.ts';

type FaultOf = (method: string, path: string) => Fault | null;

async function startAll(fault: FaultOf = () => null) {
  const [wandb, mlflow, trackio] = await Promise.all([
    startWandb({ fault }),
    startMlflow({ fault }),
    startTrackio({ fault }),
  ]);
  const all: readonly StandIn[] = [wandb, mlflow, trackio];
  onTestFinished(async () => {
    await Promise.all(all.map((each) => each.close()));
  });
  const env = {
    WANDB_API_KEY: wandb.key,
    WANDB_BASE_URL: wandb.url,
    MLFLOW_TRACKING_URI: mlflow.url,
    TRACKIO_SERVER_URL: trackio.url,
    TRACKIO_WRITE_TOKEN: trackio.key,
  };
  const violations = () => all.flatMap((each) => each.violations);
  return { wandb, mlflow, trackio, env, violations };
}

test.each([
  ['http://127.0.0.1:7860', 'TRACKIO_WRITE_TOKEN', null],
  ['https://hf.space.example', 'TRACKIO_WRITE_TOKEN', null],
  ['https://me-trackio.hf.space', 'HF_TOKEN', 'hf_1'],
  ['http://hub.example:1', 'HF_TOKEN', 'hf_1'],
])("of the hub's token, %s gets none unless it is the hub's", (url, keyVariable, key) => {
  const env = { HF_TOKEN: 'hf_1', HF_ENDPOINT: 'http://hub.example:1', TRACKIO_WRITE_TOKEN: '' };
  expect(trackioCaller(url, { fetch, signal: AbortSignal.timeout(1), env })).toMatchObject({ keyVariable, key });
});

function open({ store, folder }: TrackedRun, env: NodeJS.ProcessEnv, kind: TrackerKind, settings: object = {}): Target {
  return openTracker(TrackerSettings.parse({ kind, ...settings }), { store, project: folder, env, fetch });
}

const KINDS: readonly TrackerKind[] = ['wandb', 'mlflow', 'trackio', 'csv'];

async function readCsv({ folder, run }: TrackedRun): Promise<Record<string, string>[]> {
  const text = await readFile(join(folder, 'tracking', `${run}.csv`), 'utf8');
  const [header = '', ...lines] = text.trimEnd().split('\n');
  const columns = header.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, index) => [columns[index] ?? '', cell])));
}

function expectWandb({ runs }: WandbStandIn, { steps }: TrackedRun): void {
  const expected = steps.map(({ reward }) => reward);
  const [run] = runs.values();
  expect(run?.history.map(({ _step }) => _step)).toEqual(run?.history.map((_, index) => index));
  expect(run?.history.flatMap((row) => row['train/reward'] ?? [])).toEqual(expected);
  expect(run?.history.map((row) => row['training_step'])).toEqual([0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 12]);
  expect(run).toMatchObject({ exitcode: 0, summary: { 'train/reward': expected.at(-1), _step: 15 } });
  expectResultFirst(run!.summary);
  expect(runs.size).toBe(1);
}

function expectOthers(mlflow: MlflowStandIn, trackio: TrackioStandIn, { steps }: TrackedRun): void {
  const expected = steps.map(({ reward }) => reward);
  const [logged] = mlflow.runs.slice(-1);
  const rewards = [...logged!.metrics.values()].filter(({ key }) => key === 'train/reward');
  expect(rewards.map(({ value }) => value)).toEqual(expected);
  expect(rewards.map(({ timestamp }) => timestamp)).toEqual(steps.map(({ step }) => BEGAN_AT + step * 1000));
  expect(logged!.status).toBe('FINISHED');
  const delivered = [...logged!.metrics.values()].toSorted((a, b) => a.step - b.step);
  expectResultFirst(Object.fromEntries(delivered.map(({ key, value }) => [key, value])));
  const rows = [...trackio.rows.values()];
  expect(rows.flatMap(({ metrics }) => metrics['train/reward'] ?? [])).toEqual(expected);
  expect(rows.at(-1)?.metrics['outcome']).toBe('finished');
  expectResultFirst(rows.at(-1)!.metrics);
}

test.each([1, 2])(
  'with lost answers, repeats and refusals (seed %i), each step is delivered once, in order',
  async (seed) => {
    const { wandb, mlflow, trackio, env, violations } = await startAll(seededFaults(seed));
    const tracked = await startTrackedRun();
    const targets = KINDS.map((kind) => open(tracked, env, kind));
    await tracked.evaluate(0);
    for (let step = 1; step <= 12; step++) {
      await tracked.step();
      if (step % 4 === 0) await tracked.evaluate();
      for (const target of targets) await deliverAll(tracked, target);
    }
    for (const target of targets) await deliverAll(tracked, target, { outcome: 'finished' });

    expectWandb(wandb, tracked);
    expectOthers(mlflow, trackio, tracked);
    const lines = await readCsv(tracked);
    const rewards = lines.flatMap((line) => (line['kind'] === 'step' ? Number(line['train/reward']) : []));
    expect(rewards).toEqual(tracked.steps.map(({ reward }) => reward));
    expect(lines.filter(({ kind }) => kind === 'evaluation').map(({ step }) => Number(step))).toEqual([0, 4, 8, 12]);
    expect(violations()).toEqual([]);
  },
);

test('a tracker that was away for half of the run is complete at its end, and no other tracker waited', async () => {
  let isAway = true;
  const { wandb, trackio, env } = await startAll((_, path) => (isAway && path.includes('graphql') ? 503 : null));
  const tracked = await startTrackedRun();
  const [late, other] = [open(tracked, env, 'wandb'), open(tracked, env, 'trackio')];
  for (let step = 1; step <= 10; step++) {
    isAway = step <= 5;
    await tracked.step();
    await deliverAll(tracked, late, { tries: 1 }).catch(() => undefined);
    expect(await deliverAll(tracked, other)).toEqual([]);
  }
  expect([...wandb.runs.values()][0]?.history.map((row) => row['training_step'])).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  ]);
  expect(trackio.rows.size).toBe(10);
});

test('after a rollback, the new branch is a run of its own with its whole curve; a file goes on', async () => {
  const { wandb, mlflow, env } = await startAll();
  const tracked = await startTrackedRun();
  const targets = (['wandb', 'mlflow', 'csv'] as const).map((kind) => open(tracked, env, kind));
  const deliver = async () => {
    for (const target of targets) await deliverAll(tracked, target);
  };
  for (let step = 1; step <= 4; step++) await tracked.step();
  await deliver();
  await tracked.rollBack(2);
  await tracked.step({ reward: 9 });
  await deliver();

  const [left, taken] = [...wandb.runs.values()];
  expect(left).toMatchObject({ displayName: 'demo', exitcode: 0, tags: ['rolled-back'] });
  expect(taken).toMatchObject({ displayName: 'demo~1', groupName: 'demo', exitcode: null });
  expect(taken?.history.map((row) => row['training_step'])).toEqual([1, 2, 3]);
  expect(taken?.history.at(-1)?.['train/reward']).toBe(9);
  expect(mlflow.runs.map(({ status, tags }) => [tags['mlflow.runName'], status])).toEqual([
    ['demo', 'FINISHED'],
    ['demo~1', 'RUNNING'],
  ]);
  expect((await readCsv(tracked)).map(({ branch, step }) => `${branch}.${step}`)).toEqual([
    '0.1',
    '0.2',
    '0.3',
    '0.4',
    '1.3',
  ]);
});

test.each([
  ['failed', 1, 'FAILED'],
  ['crashed', 1, 'FAILED'],
  ['stopped', 0, 'FINISHED'],
  ['cancelled', 255, 'KILLED'],
] as const)('the end %s is delivered, and taken back when the run continues', async (outcome, exitcode, status) => {
  const { wandb, mlflow, env } = await startAll();
  const tracked = await startTrackedRun();
  const targets = [open(tracked, env, 'wandb'), open(tracked, env, 'mlflow')];
  const delivered = () => [[...wandb.runs.values()][0]?.exitcode, mlflow.runs[0]?.status];
  await tracked.step();
  for (const target of targets) await deliverAll(tracked, target, { outcome });
  expect(delivered()).toEqual([exitcode, status]);
  await tracked.step();
  for (const target of targets) await deliverAll(tracked, target);
  expect(delivered()).toEqual([null, 'RUNNING']);
  for (const target of targets) await deliverAll(tracked, target, { outcome: 'finished' });
  expect(delivered()).toEqual([0, 'FINISHED']);
  expect([...wandb.runs.values()].map(({ history }) => history.length)).toEqual([2]);
});

test('an evaluation that comes while a delivery is in doubt changes no row of it', async () => {
  let fault: Fault | null = null;
  const { wandb, env } = await startAll((_, path) => (path.endsWith('file_stream') ? fault : null));
  const tracked = await startTrackedRun();
  const target = open(tracked, env, 'wandb');
  for (let step = 1; step <= 3; step++) await tracked.step();
  fault = 'lost';
  await expect(deliverAll(tracked, target, { tries: 0 })).rejects.toThrow('is unavailable');
  expect((await readCursor(tracked.store, 'demo', 'wandb'))?.pending).toEqual(['s1', 's2', 's3']);
  await tracked.evaluate(1);
  fault = null;
  await deliverAll(tracked, target);
  const [run] = wandb.runs.values();
  expect(run?.history.map((row) => row['training_step'])).toEqual([1, 2, 3, 1]);
});

test('a tracker that begins late gets what comes, or everything', async () => {
  const { wandb, env } = await startAll();
  const tracked = await startTrackedRun();
  for (let step = 1; step <= 3; step++) await tracked.step();
  await deliverAll(tracked, open(tracked, env, 'wandb', { name: 'late' }), { from: 'now' });
  await tracked.step();
  await deliverAll(tracked, open(tracked, env, 'wandb', { name: 'late' }), { from: 'now' });
  const steps = () => [...wandb.runs.values()][0]?.history.map((row) => row['training_step']);
  expect(steps()).toEqual([4]);
  await deliverAll(tracked, open(tracked, env, 'wandb', { name: 'all' }), { from: 'start' });
  expect(steps()).toEqual([1, 2, 3, 4]);
});

test('a refused or missing key is named by its variable, and stands in no message', async () => {
  const { env } = await startAll();
  const tracked = await startTrackedRun();
  const wrong = 'wrong-canary-0123456789';
  const failures = async (key: string | undefined) => {
    const target = open(tracked, { ...env, WANDB_API_KEY: key }, 'wandb');
    return String(await deliverAll(tracked, target, { tries: 0 }).catch((error: unknown) => error));
  };
  expect(await failures(undefined)).toContain('needs a key in WANDB_API_KEY');
  const refused = await failures(wrong);
  expect(refused).toContain('check the key in WANDB_API_KEY');
  expect(refused).not.toContain(wrong);
});

test('a line of the CSV file that a crash cut off is written again, and a new metric gets a column', async () => {
  const tracked = await startTrackedRun();
  const target = open(tracked, {}, 'csv');
  await tracked.step();
  await deliverAll(tracked, target);
  const file = join(tracked.folder, 'tracking', 'demo.csv');
  const { appendFile } = await import('node:fs/promises');
  await appendFile(file, 'step,0,2,2026-11-');
  await tracked.step({ metrics: { 'own, new': 3 } });
  await deliverAll(tracked, target);
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines[0]).toContain('"train/own, new"');
  expect(lines[1]?.endsWith(',')).toBe(true);
  expect(lines[2]?.endsWith(',3')).toBe(true);
});

test("an agent's metrics take no place of Temper's own, and two names never become one", async () => {
  const { mlflow, env } = await startAll();
  const tracked = await startTrackedRun();
  const own = { reward: 1000, exception_rate: 0.99, reward_std_dev: 7, constructor: 8 };
  const illegal = { 'tokens//call': 1, 'pass@1': 2, pass_1: 3, '/a': 4, 'a/../b': 5, '..': 6, ['n'.repeat(300)]: 7 };
  await tracked.step({ reward: 0.25, failedAttempts: 0, train: { rewardStd: 0.1 }, metrics: { ...own, ...illegal } });
  expect(await deliverAll(tracked, open(tracked, env, 'mlflow'))).toEqual([]);
  const delivered = new Map([...mlflow.runs[0]!.metrics.values()].map(({ key, value }) => [key, value]));
  const named = ['reward', 'exception_rate', 'reward_std_dev', 'constructor', 'pass_1'];
  expect(named.map((name) => delivered.get(`train/${name}`))).toEqual([0.25, 0, 0.1, 8, 3]);
  const keys = [...delivered.keys()]
    .filter((key) => /^train\/.*_[0-9a-f]{6}$/.test(key))
    .map((key) => key.slice(6, -7));
  expect(keys).toEqual(['tokens/_/call', 'pass_1', '_/a', 'a/__/b', '__', 'n'.repeat(237)]);
});

test.each([
  ['databricks', 'must begin with http:// or https://, got "databricks/api/'],
  ['file:./mlruns', 'must begin with http:// or https://, got "file:./mlruns/api/'],
  ['http://a b', 'must begin with http:// or https://, got "http://a b/api/'],
])('the address %j of a tracker is refused', async (address, said) => {
  const api = openMlflow({ url: null }, { MLFLOW_TRACKING_URI: address }, { fetch, signal: AbortSignal.timeout(9000) });
  await expect(findOrMakeExperiment(api, 'x')).rejects.toThrow(said);
});

test.each([
  ['RESOURCE_ALREADY_EXISTS', /^the experiment "x" of MLflow is deleted, or belongs to others/, 3],
  ['names must not end in x', /MLflow refused the request .*names must not end in x/, 2],
])('an experiment that can be neither found nor made is reported: %s', async (message, said, requests) => {
  let asked = 0;
  const refuse: typeof fetch = async (_, { method } = {}) => {
    asked += 1;
    return Response.json({ message }, { status: method === 'POST' ? 400 : 404 });
  };
  const api = openMlflow(
    { url: null },
    { MLFLOW_TRACKING_URI: '' },
    { fetch: refuse, signal: AbortSignal.timeout(9000) },
  );
  expect(api.baseUrl).toBe('http://127.0.0.1:5000');
  await expect(findOrMakeExperiment(api, 'x')).rejects.toThrow(said);
  expect(asked).toBe(requests);
});

test("metrics have ART's names", () => {
  const [step] = [{ reward: 0.5, metrics: { wins: 1 }, train: { rewardStd: 0.1, gradNorm: 2 }, learningRate: 1e-3 }];
  const summary = {
    ...step,
    step: 3,
    groups: 3,
    replacedGroups: 0,
    unused: { 'no-variance': 1 },
    failedAttempts: 1,
    attempts: 8,
    sampledTokens: 70,
    seconds: { step: 2, train: 1 },
    adapterSha256: 'a'.repeat(64),
  };
  const totals = { seconds: 6, attempts: 24, sampledTokens: 210 };
  expect(metricsOfStep(summary, totals)).toMatchObject({
    'train/reward': 0.5,
    'train/reward_std_dev': 0.1,
    'train/exception_rate': 1 / 8,
    'loss/grad_norm': 2,
    'data/step_num_groups_submitted': 4,
    'data/step_num_groups_trainable': 3,
    'time/wall_clock_sec': 6,
    'train/wins': 1,
  });
});
