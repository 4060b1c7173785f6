/** Schedules and runs as a person steers them, on the shared Temporal server: the real command line and store, fake weights. */
import { join } from 'node:path';

import { Client, Connection, type ScheduleDescription } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';

import { createScheduleActivities } from '../../activities/schedule.ts';
import type { InitialiseInput, TrainInput, TrainResult } from '../../core/contract/contract.ts';
import { rolloutQueue, scheduleId, storeQueue, WORKFLOW_QUEUE } from '../../core/names/queues.ts';
import { GPU_QUEUE } from '../../core/contract/wire-constants.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { manifestKey, stateKey } from '../../store/layout.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { publishRun } from '../../store/records/runs/publish-run.ts';
import { readFirings, type Firing } from '../../store/records/production/schedules.ts';
import type { Store } from '../../store/store.ts';
import type { AgentActivities, GpuActivities } from '../../workflows/activities.ts';
import { writeAgent } from '../cli/agents.ts';
import { runCli, type CliResult } from '../cli/run-cli.ts';
import { createFakeRun, type FakeOptions, type FakeRun } from './fake-activities.ts';
import { eventually } from './harness.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { temporaryFolder } from '../temporary-folder.ts';

export interface Scheduled {
  client: Client;
  storeId: string;
  store: Store;
  fake: FakeRun;
  project: string;
  temper: (...args: string[]) => Promise<CliResult>;
  /** `temper schedule …` */
  schedule: (...args: string[]) => Promise<CliResult>;
  create(name: string, ...flags: string[]): Promise<CliResult>;
  describe(name: string): Promise<ScheduleDescription>;
  /** Once so many firings of a schedule have ended well, and none is under way. */
  concluded(name: string, count: number): Promise<Firing[]>;
}

export interface ScheduledOptions extends FakeOptions {
  /** False: nobody holds the agent. */
  agentWorker?: boolean;
}

const SMALL = ['--base-model', 'pocket', '--steps', '2', '--groups-per-step', '2', '--group-size', '4'];

export async function playScheduled(
  { address, codePath }: { address: string; codePath: string },
  { agentWorker = true, ...options }: ScheduledOptions,
  scene: (scheduled: Scheduled) => Promise<void>,
): Promise<void> {
  const project = temporaryFolder();
  const agentFile = await writeAgent(project);
  const store = await openStore(join(project, '.temper', 'store'));
  const fake = createFakeRun(options);
  const [connection, native] = await Promise.all([
    Connection.connect({ address }),
    NativeConnection.connect({ address }),
  ]);
  const workers = await createWorkers({ native, codePath, store, fake, agentWorker });
  const running = workers.map((worker) => worker.run());
  const client = new Client({ connection });
  const temper = (...args: string[]) => runCli(project, args, { env: { TEMPORAL_ADDRESS: address } });
  const schedule = (...args: string[]) => temper('schedule', ...args);
  const storeId = await store.id();
  const describe = (name: string) => client.schedule.getHandle(scheduleId(storeId, name)).describe();
  const made: string[] = [];
  try {
    await scene({
      client,
      storeId,
      store,
      fake,
      project,
      temper,
      schedule,
      create: (name, ...flags) => {
        made.push(name);
        return schedule('create', agentFile, '--name', name, ...SMALL, ...flags);
      },
      describe,
      async concluded(name, count) {
        const firings = await eventually(
          () => readFirings(store, name),
          (found) => found.filter(({ checkpoint }) => checkpoint !== null).length >= count,
        );
        // The workflow ends after its last word, and the schedule sees it a little later.
        await eventually(
          () => describe(name),
          ({ info }) => info.runningActions.length === 0,
        );
        return firings;
      },
    });
  } finally {
    for (const name of made)
      await client.schedule
        .getHandle(scheduleId(storeId, name))
        .delete()
        .catch(() => undefined);
    for (const worker of workers) worker.shutdown();
    await Promise.all(running);
    await connection.close();
    await native.close();
  }
}

interface Staff {
  native: NativeConnection;
  codePath: string;
  store: Store;
  fake: FakeRun;
  agentWorker: boolean;
}

async function createWorkers({ native, codePath, store, fake, agentWorker }: Staff): Promise<Worker[]> {
  const [connection, logger] = [native, { info: () => undefined, warn: () => undefined }];
  const activities = {
    ...storeAgent(fake.agent, store),
    ...createScheduleActivities({ store, logger, pauses: { longestPauseMs: () => 0 } }),
  };
  const storeId = await store.id();
  const queueOf = (name: string) => ({ connection, taskQueue: storeQueue(storeId, name) });
  return Promise.all([
    Worker.create({ ...queueOf(WORKFLOW_QUEUE), workflowBundle: { codePath } }),
    Worker.create({ ...queueOf(GPU_QUEUE), activities: storeGpu(fake.gpu, store) }),
    ...(agentWorker ? [Worker.create({ connection, taskQueue: rolloutQueue(storeId, 'guess'), activities })] : []),
  ]);
}

/** The fakes leave in the store what schedules look for there. */
function storeAgent(agent: AgentActivities, store: Store): AgentActivities {
  return {
    ...agent,
    async prepare(input) {
      await publishRun(store, { config: input.config, agentCodeSha256: 'e'.repeat(64) });
      return agent.prepare(input);
    },
    async record(input) {
      await agent.record(input);
      await store.replace(stateKey(input.state.run), encodeJson(input.state));
    },
  };
}

function storeGpu(gpu: GpuActivities, store: Store): GpuActivities {
  const commit = async (result: TrainResult): Promise<TrainResult> => {
    const { checkpoint } = result;
    const { branch, step, adapterSha256 } = checkpoint;
    await store.publish(manifestKey(checkpoint), encodeJson(madeManifest({ branch, step }, { adapterSha256 })));
    return result;
  };
  return {
    initialise: async (input: InitialiseInput) => commit(await gpu.initialise(input)),
    train: async (input: TrainInput) => commit(await gpu.train(input)),
  };
}
