/** Starts a run's workflow, for every command. */
import type { Client, WorkflowHandle } from '@temporalio/client';
import type { RunConfig } from '../core/contract/contract.ts';
import { configDetails, configSummary } from '../core/reports/describe-config.ts';
import { rolloutQueue, runWorkflowId, storeQueue } from '../core/names/queues.ts';
import type { Store } from '../store/store.ts';
import { namesOfTargets } from '../workers/config/targets.ts';
import { loadConfig } from '../workers/config/config.ts';
import { patiently } from '../workers/connection/connection.ts';
import type { ResumeFrom, TrainRunInput } from '../workflows/run.ts';
import type { trainRun } from '../workflows/train-run.ts';

interface RunStart {
  readonly store: Store;
  /** Configuration of the run's first start. */
  readonly config: RunConfig;
  readonly project: string;
  readonly resume: ResumeFrom | null;
  /** Behavior if the run is running: join it, or fail. */
  readonly conflict: 'USE_EXISTING' | 'FAIL';
  /** Targets to tell; null: those of `temporal.config.ts`. */
  readonly targets?: readonly string[] | null;
}

export async function startRun(client: Client, start: RunStart): Promise<WorkflowHandle<typeof trainRun>> {
  const { store, config, project, resume, conflict } = start;
  const { queues, ...settings } = await loadConfig(project);
  const storeId = await store.id();
  const input: TrainRunInput = {
    config,
    queues: { rollout: rolloutQueue(storeId, config.agent), gpu: storeQueue(storeId, queues.gpu) },
    carried: null,
    resume,
    ...trackingOf(storeId, start.targets ?? namesOfTargets(settings)),
  };
  return patiently(
    () =>
      client.workflow.start<typeof trainRun>('trainRun', {
        workflowId: runWorkflowId(storeId, config.run),
        taskQueue: storeQueue(storeId, queues.workflows),
        args: [input],
        workflowIdConflictPolicy: conflict,
        staticSummary: configSummary(config),
        staticDetails: configDetails(config),
        memo: { config },
      }),
    { limitMs: 30_000 },
  );
}

/** Absent if nobody is told: the input of such a run is as it always was. */
export function trackingOf(storeId: string, targets: readonly string[]): Pick<TrainRunInput, 'track'> {
  return targets.length === 0 ? {} : { track: { storeId, targets: [...targets] } };
}
