/**
 * `npm run histories [SCENE…]` makes the histories that `test/workflows/replay.test.ts` replays, all of them or those of
 * scenes: functions below without their `save`. Until 0.1.0 is released, they may be made anew at every change; later only
 * where no run of an older version can be in flight.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ApplicationFailure } from '@temporalio/activity';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';

import type { RolloutInput, TrainInput } from '../../core/contract/contract.ts';
import { planInitialise } from '../../core/plan/step.ts';
import { scheduleId } from '../../core/names/queues.ts';
import {
  pauseUpdate,
  progressQuery,
  resumeUpdate,
  rewardsSignal,
  rollbackUpdate,
  setUpdate,
  stopUpdate,
} from '../../workflows/messages.ts';
import type { retrain } from '../../workflows/retrain.ts';
import { startTestServer } from '../temporal-server.ts';
import { bundleWorkflows } from '../workflows/bundle.ts';
import type { ActivityName, FakeOptions } from '../workflows/fake-activities.ts';
import { createGate, eventually, holdTraining, openTestBed, STORE_ID, SUPERVISED, type RunHandle, type RunSetup, type TestBed } from '../workflows/harness.ts';
import { planWork, startStep } from '../workflows/loop-step.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-histories-'));
  const codePath = join(folder, 'workflows.js');
  await writeFile(codePath, await bundleWorkflows());
  const server = await startTestServer();
  const bed = await openTestBed(server.address, codePath);
  try {
    const wanted = process.argv.slice(2);
    const scenes = [savePlain, saveContinuedAndStopped, saveFailed, saveCancelled, saveRetrained, saveSteered, saveJudged, saveOverlapping, saveSupervised, saveTrainStep, saveWindowed];
    for (const scene of scenes)
      if (wanted.length === 0 || wanted.includes(scene.name.replace('save', ''))) await scene(bed);
  } finally {
    await bed.close();
    await server.stop();
    await rm(folder, { recursive: true });
  }
}

/** All that a good run does: a replaced group, an empty step, a retry, an evaluation on the way. */
async function savePlain(bed: TestBed): Promise<void> {
  const fake: FakeOptions = {
    use: ({ step, group }) => (step === 2 || (step === 1 && group === 0) ? 'no-variance' : 'trained'),
    before: failFirst('train'),
  };
  await bed.play({ config: { run: 'plain', steps: 3, evalEvery: 2 }, fake }, async ({ handle }) => {
    await handle.result();
    await save('plain', handle);
  });
}

/** Steps from what is complete: a step of two policies, a group that is too old, and a window that is carried along. */
async function saveWindowed(bed: TestBed): Promise<void> {
  const given = new Set(['1.2', '1.3', '2.0', '1.1']);
  const missing = ({ step, group }: { step: number; group: number }) => (given.has(`${step}.${group}`) ? 0 : 4);
  const window = { judge: 'external', external: {}, groupsAhead: 2, maxRewardStaleness: 1 };
  const setup: RunSetup = { config: { run: 'windowed', steps: 3, continueAsNewEvery: 2, ...window }, fake: { missing } };
  await bed.play(setup, async ({ handle, client }) => {
    await eventually(
      () => handle.query(progressQuery),
      ({ awaited }) => awaited?.step === 3,
    );
    given.add('3.0').add('3.1');
    await handle.signal(rewardsSignal);
    await handle.result();
    await save('windowed-on', handle);
    await save('windowed', client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId));
  });
}

async function saveContinuedAndStopped(bed: TestBed): Promise<void> {
  const [reached, released] = [createGate(), createGate()];
  const before = async (name: ActivityName, input: unknown) => {
    if (name !== 'rollout' || (input as RolloutInput).step !== 2) return;
    reached.open();
    await released.opened;
  };
  const setup: RunSetup = { config: { run: 'continued', steps: 3, continueAsNewEvery: 1 }, fake: { before } };
  await bed.play(setup, async ({ handle, client }) => {
    await reached.opened;
    await handle.executeUpdate(stopUpdate, { args: [{ reason: 'saved' }], updateId: 'stop' });
    released.open();
    await handle.result();
    await save('stopped', handle);
    await save('continued', client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId));
  });
}

async function saveFailed(bed: TestBed): Promise<void> {
  const fake: FakeOptions = {
    before: (name) => {
      if (name !== 'train') return;
      throw ApplicationFailure.create({ type: 'PolicyMismatch', message: 'sampled by a, trained b' });
    },
  };
  await bed.play({ config: { run: 'failed' }, fake }, async ({ handle }) => {
    await handle.result().catch(() => undefined);
    await save('failed', handle);
  });
}

async function saveCancelled(bed: TestBed): Promise<void> {
  const [reached, released] = [createGate(), createGate()];
  const before = async (name: ActivityName) => {
    if (name !== 'train') return;
    reached.open();
    await released.opened;
  };
  await bed.play({ config: { run: 'cancelled' }, fake: { before } }, async ({ handle }) => {
    await reached.opened;
    await handle.cancel();
    await handle.result().catch(() => undefined);
    await save('cancelled', handle);
    released.open();
  });
}

/** Firings of a schedule beside a run: one whose run ends well, one whose run fails. */
async function saveRetrained(bed: TestBed): Promise<void> {
  const before = (name: ActivityName, input: unknown) => {
    if (name !== 'train' || (input as TrainInput).run !== 'failing-1') return;
    throw ApplicationFailure.create({ type: 'LossNotFinite', message: 'loss is NaN' });
  };
  await bed.play({ config: { run: 'beside', steps: 1 }, fake: { before } }, async ({ client, input, workflowQueue }) => {
    for (const schedule of ['retrained', 'failing']) {
      const config = { ...input.config, run: schedule };
      const handle = await client.workflow.start<typeof retrain>('retrain', {
        workflowId: `${scheduleId(STORE_ID, schedule)}-2026-11-21T03:00:00Z`,
        taskQueue: workflowQueue,
        args: [{ schedule, config, from: null, storeId: STORE_ID, queues: input.queues }],
      });
      await handle.result().catch(() => undefined);
      await save(schedule === 'failing' ? 'retrained-failed' : schedule, handle);
    }
  });
}

/** Paused and changed in step 1, resumed, rolled back in step 3, stopped on the branch; each update is in the history. */
async function saveSteered(bed: TestBed): Promise<void> {
  const [first, third] = [holdTraining(1), holdTraining(3)];
  const before = async (name: ActivityName, input: unknown) => {
    await first.before(name, input);
    await third.before(name, input);
  };
  const because = { reason: 'saved' };
  await bed.play({ config: { run: 'steered', steps: 9 }, fake: { before } }, async ({ handle }) => {
    await first.reached;
    await handle.executeUpdate(pauseUpdate, { args: [because], updateId: 'pause' });
    const settings = { learningRate: 0.5, steps: 8 };
    await handle.executeUpdate(setUpdate, { args: [{ settings, ...because }], updateId: 'set' });
    first.release();
    await eventually(
      () => handle.query(progressQuery),
      ({ state }) => state === 'paused',
    );
    await handle.executeUpdate(resumeUpdate, { updateId: 'resume' });
    await third.reached;
    const rollback = { step: 1, settings: { groupSize: 3 }, ...because };
    await handle.executeUpdate(rollbackUpdate, { args: [rollback], updateId: 'rollback' });
    await eventually(
      () => handle.query(progressQuery),
      ({ branch }) => branch === 1,
    );
    await handle.executeUpdate(stopUpdate, { args: [because], updateId: 'stop' });
    third.release();
    await handle.result();
    await save('steered', handle);
  });
}

/** Judged by somebody else, paused where that had cost enough, and resumed with more to spend. */
async function saveJudged(bed: TestBed): Promise<void> {
  const spent = () => ({ calls: 1, cached: 0, promptTokens: 900, completionTokens: 100, usd: 0.5 });
  const config = { run: 'judged', steps: 3, judge: 'openai/gpt-5-mini', maxCostUsd: 2 };
  const fake: FakeOptions = { spent, before: failFirst('judgeGroup') };
  await bed.play({ config, fake }, async ({ handle }) => {
    await eventually(
      () => handle.query(progressQuery),
      ({ state }) => state === 'paused',
    );
    const settings = { maxCostUsd: 10 };
    await handle.executeUpdate(setUpdate, { args: [{ settings, reason: null }], updateId: 'set' });
    await handle.executeUpdate(resumeUpdate, { updateId: 'resume' });
    await handle.result();
    await save('judged', handle);
  });
}

/** Each step is played beside the training of the one before, and handed on by continue-as-new. */
async function saveOverlapping(bed: TestBed): Promise<void> {
  const config = { run: 'overlapping', steps: 4, groupsPerStep: 1, replacementRounds: 0, maxStaleness: 1 };
  const setup: RunSetup = { config: { ...config, continueAsNewEvery: 3, evalEvery: 2 }, fake: { maxStaleness: 1 } };
  await bed.play(setup, async ({ handle, client }) => {
    await handle.result();
    await save('overlapping', client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId));
    await save('overlapping-on', handle);
  });
}

/** Examples alone, and examples before the steps of an agent. */
async function saveSupervised(bed: TestBed): Promise<void> {
  const alone = { run: 'supervised', steps: 2, supervised: SUPERVISED };
  const before = { run: 'warm-started', steps: 2, groupsPerStep: 1, supervised: { ...SUPERVISED, steps: 1 } };
  for (const config of [alone, before])
    await bed.play({ config }, async ({ handle }) => {
      await handle.result();
      await save(config.run, handle);
    });
}

/** The history of a script's own loop, beside a run. */
async function saveTrainStep(bed: TestBed): Promise<void> {
  await bed.play({ config: { run: 'loop' }, fake: { before: failFirst('train') } }, async (started) => {
    await started.handle.terminate('only its workers are needed');
    const initialise = { kind: 'initialise', input: planInitialise(started.input.config, 0) } as const;
    for (const work of [initialise, planWork(started)]) {
      const handle = await startStep(started, work);
      await handle.result();
      await save(`train-step-${work.kind}`, handle);
    }
  });
}

function failFirst(failing: ActivityName): (name: ActivityName) => void {
  let failed = false;
  return (name) => {
    if (failed || name !== failing) return;
    failed = true;
    throw ApplicationFailure.retryable('fails once', 'TrainerFailed');
  };
}

async function save(name: string, handle: Pick<RunHandle, 'fetchHistory'>): Promise<void> {
  // Stack traces name folders of this machine.
  const history: unknown = JSON.parse(historyToJSON(await handle.fetchHistory()), (key: string, value: unknown) =>
    key === 'stackTrace' ? '' : value,
  );
  await writeFile(`${FOLDER}${name}.json`, `${JSON.stringify(history)}\n`);
}

await main();
