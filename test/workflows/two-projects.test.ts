/** Two projects in one namespace, each with its store and its workers: what has one name there are two things. */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';

import { expect, inject, test } from 'vitest';

import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { startRun } from '../../operations/start-run.ts';
import { readState } from '../../store/records/runs/run-reader.ts';
import { complaintIn, runCli } from '../cli/run-cli.ts';
import { eventually, holdTraining, quietRuntime } from './harness.ts';
import { playScheduled, type Scheduled } from './scheduled.ts';
import { temporaryFolder } from '../temporary-folder.ts';

quietRuntime();

type Scene = (one: Scheduled, other: Scheduled) => Promise<void>;

/** Two projects, each with the training of one step of branch 0 held until it is released. */
async function playBoth(steps: readonly [number, number], scene: (...held: Parameters<Scene>) => Promise<void>) {
  const [first, second] = steps.map(holdTraining) as [ReturnType<typeof holdTraining>, ReturnType<typeof holdTraining>];
  const place = { address: inject('temporalAddress'), codePath: inject('workflowBundle') };
  await playScheduled(place, first, (one) =>
    playScheduled(place, second, async (other) => {
      held.set(one, first).set(other, second);
      await scene(one, other);
    }),
  );
}

const held = new Map<Scheduled, ReturnType<typeof holdTraining>>();

function start({ client, store, project }: Scheduled, run: string, options: { steps: number; learningRate: number }) {
  const small = {
    agent: 'guess',
    baseModel: 'pocket',
    groupsPerStep: 2,
    groupSize: 4,
    learningRateSchedule: 'constant',
  };
  const config = defaultRunConfig({ ...small, learningRateSchedule: 'constant', run, ...options });
  return startRun(client, { store, config, project, resume: null, conflict: 'USE_EXISTING' });
}

const trained = ({ fake }: Scheduled) =>
  fake.trainings.map(({ branch, step, learningRate }) => [`${branch}/${step}`, learningRate]);

test('runs of one name end with their own results, and a command reaches that of its own project', async () => {
  const run = `demo-${randomUUID().slice(0, 8)}`;
  await playBoth([2, 3], async (one, other) => {
    const [handle, otherHandle] = [
      await start(one, run, { steps: 4, learningRate: 0.01 }),
      await start(other, run, { steps: 5, learningRate: 0.02 }),
    ];
    await Promise.all([one, other].map((each) => held.get(each)!.reached));

    expect(await one.temper('stop', run)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await other.temper('rollback', run, '--step', '1')).toMatchObject({ exitCode: 0, stderr: '' });
    for (const each of [one, other]) held.get(each)!.release();
    expect(await handle.result()).toMatchObject({ state: 'stopped', branch: 0, step: 2 });
    expect(await otherHandle.result()).toMatchObject({ state: 'completed', branch: 1, step: 5 });

    expect(trained(one)).toEqual(['0/1', '0/2'].map((step) => [step, 0.01]));
    expect(trained(other).filter(([step]) => step !== '0/3')).toEqual(
      ['0/1', '0/2', '1/2', '1/3', '1/4', '1/5'].map((step) => [step, 0.02]),
    );
    expect(await readState(one.store, run)).toMatchObject({ state: 'stopped', step: 2 });
    expect(await readState(other.store, run)).toMatchObject({ state: 'completed', step: 5 });

    const { stderr, exitCode } = await one.temper('stop', run);
    expect({ stderr, exitCode }).toMatchObject({
      exitCode: 2,
      stderr: `temper: no run ${run} of the store ${one.store.uri} is running on this server; see temper runs, or continue it with temper train or temper rollback`,
    });
  });
});

test('schedules of one name fire for their own project, and each lists its own', async () => {
  const name = `nightly-${randomUUID().slice(0, 8)}`;
  await playBoth([9, 9], async (one, other) => {
    await one.create(name, '--every', '2w');
    expect(await other.schedule('list', '--json')).toMatchObject({ stdout: '[]' });
    expect(await other.create(name, '--every', '1w')).toMatchObject({ exitCode: 0, stderr: '' });
    await other.schedule('trigger', name);
    await other.concluded(name, 1);
    expect(other.fake.trainings).toHaveLength(2);
    expect(one.fake.trainings).toEqual([]);
    const listed = async (of: Scheduled) => {
      const { stdout } = await of.schedule('list', '--json');
      return (JSON.parse(stdout) as { timing: string; firings: number }[]).map((each) => [each.timing, each.firings]);
    };
    await eventually(
      () => listed(other),
      ([found]) => found?.[1] === 1,
    );
    expect([await listed(one), await listed(other)]).toEqual([[['every 2w', 0]], [['every 1w', 1]]]);
    await other.schedule('delete', name);
    expect(await listed(one)).toEqual([['every 2w', 0]]);
  });
});

test('a command about a run in a folder without a store says that there is none, and makes no store', async () => {
  const project = temporaryFolder();
  const env = { TEMPORAL_ADDRESS: inject('temporalAddress') };
  for (const command of ['stop', 'pause', 'resume'])
    expect(await complaintIn(project, [command, 'demo'], { env })).toMatch(/^temper: no run demo of the store file:/);
  for (const action of ['show', 'pause', 'trigger', 'delete'])
    expect(await complaintIn(project, ['schedule', action, 'demo'], { env })).toMatch(/^temper: no schedule demo/);
  expect(await runCli(project, ['schedule', 'list', '--json'], { env })).toMatchObject({ exitCode: 0, stdout: '[]' });
  expect(await readdir(project, { recursive: true })).toEqual([]);
});
