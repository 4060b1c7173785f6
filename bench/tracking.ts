/**
 * `npm run bench -- tracking`: pairs of runs of tiny steps, one with four trackers and one without, in turns on one worker.
 * What trackers cost is the difference; their servers run in this process, on the same cores.
 */
import type { ChildProcess } from 'node:child_process';
import type { Client } from '@temporalio/client';
import { GPU_QUEUE } from '../core/contract/wire-constants.ts';
import { rolloutQueue, runWorkflowId, storeQueue, WORKFLOW_QUEUE } from '../core/names/queues.ts';
import { defaultRunConfig } from '../core/rules/run-defaults.ts';
import { openStore } from '../store/bytes/open-store.ts';
import { startMlflow } from '../test/outbound/track/mlflow-stand-in.ts';
import { startTrackio } from '../test/outbound/track/trackio-stand-in.ts';
import { startWandb } from '../test/outbound/track/wandb-stand-in.ts';
import { awaitTracking } from '../workers/tracking/tracking.ts';
import type { trainRun } from '../workflows/train-run.ts';
import { countFlag, mean, median, type Bench, type Flags } from './bench.ts';
import { onFakeStack, refuseDeath, watchMemory, type Place } from './long.ts';

const TARGETS = ['wandb', 'mlflow', 'trackio', 'csv'];
const TOLD_WITHIN_MS = 60_000;

export const tracking: Bench = {
  name: 'tracking',
  summary: 'what four trackers add to the time of a step, in pairs of runs, and to the memory of the worker',
  flags: { pairs: '5', steps: '200', groups: '2', 'group-size': '4', 'worker-heap-mib': '4096' },
  run: runBench,
};

async function runBench(flags: Flags): Promise<object> {
  const [wandb, mlflow, trackio] = await Promise.all([startWandb(), startMlflow(), startTrackio()]);
  Object.assign(process.env, {
    WANDB_API_KEY: wandb.key,
    WANDB_BASE_URL: wandb.url,
    MLFLOW_TRACKING_URI: mlflow.url,
    TRACKIO_SERVER_URL: trackio.url,
    TRACKIO_WRITE_TOKEN: trackio.key,
  });
  try {
    const heapMiB = countFlag(flags, 'worker-heap-mib');
    const found = await onFakeStack(heapMiB, (place, client, worker) => measure(flags, { place, client, worker }));
    const rows = [...wandb.runs.values()].map(({ history }) => history.length);
    return { ...found, rowsOfWandb: rows };
  } finally {
    await Promise.all([wandb.close(), mlflow.close(), trackio.close()]);
  }
}

interface Stack {
  readonly place: Place;
  readonly client: Client;
  readonly worker: ChildProcess;
}

async function measure(flags: Flags, stack: Stack): Promise<object> {
  const memory = watchMemory(stack.worker);
  const pairs: { off: number; on: number }[] = [];
  try {
    // Not counted: caches fill.
    await playRun(flags, stack, 'warm-up', TARGETS);
    for (let pair = 0; pair < countFlag(flags, 'pairs'); pair++) {
      const found = { off: 0, on: 0 };
      for (const kind of pair % 2 === 0 ? (['off', 'on'] as const) : (['on', 'off'] as const))
        found[kind] = await playRun(flags, stack, `${kind}-${pair}`, kind === 'on' ? TARGETS : []);
      pairs.push(found);
      const { off, on } = found;
      console.log(
        `  pair ${pair}: ${(off * 1000).toFixed(1)} ms a step without, ${(on * 1000).toFixed(1)} with trackers`,
      );
    }
  } finally {
    memory.stop();
  }
  const ratios = pairs.map(({ on, off }) => on / off);
  const half = memory.samples.length >> 1;
  return {
    pairs: pairs.length,
    ratioMedian: median(ratios),
    ratioMean: mean(ratios),
    ratios,
    workerMiB: [median(memory.samples.slice(0, half)), median(memory.samples.slice(half))].map(Math.round),
  };
}

/** Seconds of a step: those of the whole run, since a curve has them in tenths. */
async function playRun(
  flags: Flags,
  { place, client, worker }: Stack,
  run: string,
  targets: readonly string[],
): Promise<number> {
  const store = await openStore(place.store);
  const storeId = await store.id();
  const config = defaultRunConfig({
    run,
    agent: 'bench-digit',
    baseModel: 'pocket',
    steps: countFlag(flags, 'steps'),
    groupsPerStep: countFlag(flags, 'groups'),
    groupSize: countFlag(flags, 'group-size'),
    replacementRounds: 0,
    evalScenarios: 4,
  });
  const queues = { rollout: rolloutQueue(storeId, config.agent), gpu: storeQueue(storeId, GPU_QUEUE) };
  const track = targets.length === 0 ? {} : { track: { storeId, targets: [...targets] } };
  const startedAt = performance.now();
  const handle = await client.workflow.start<typeof trainRun>('trainRun', {
    workflowId: runWorkflowId(storeId, run),
    taskQueue: storeQueue(storeId, WORKFLOW_QUEUE),
    args: [{ config, queues, carried: null, resume: null, ...track }],
  });
  await Promise.race([handle.result(), refuseDeath(worker, place)]);
  const seconds = (performance.now() - startedAt) / 1000;
  const late = await awaitTracking(client, storeId, { run, targets, limitMs: TOLD_WITHIN_MS });
  if (late.length > 0) throw new Error(`${late.join(', ')} did not get all of ${run} within a minute`);
  return seconds / config.steps;
}
