/**
 * One firing of a schedule: the next run of its lineage, begun from the checkpoint that the last one ended with. The run
 * itself is `trainRun`, a child under its own name, so that everything that can be done to a run can be done to this one.
 */
import {
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';

import type { Checkpoint, ProductionSource, PromoteInput, RunConfig, RunState } from '../core/contract/contract.ts';
import { configDetails, configSummary } from '../core/reports/describe-config.ts';
import { policyName } from '../core/names/policy-name.ts';
import { runWorkflowId } from '../core/names/queues.ts';
import { openScheduleActivities, type RunQueues, type ScheduleActivities } from './activities.ts';
import type { TrainRunInput } from './run.ts';
import type { Tracking } from './track-run.ts';
import { trainRun } from './train-run.ts';

/** The input is in the schedule, which everybody can read: no secret, no path. */
export interface RetrainInput {
  schedule: string;
  /** The configuration of every run of the schedule, except for name, seed and parent. */
  config: RunConfig;
  /** The checkpoint that the first run begins with; null: a fresh adapter. */
  from: Checkpoint | null;
  /** The store of these runs. */
  storeId: string;
  queues: RunQueues;
  /** Recorded conversations that each run trains. Absent: runs play their agent. */
  production?: ProductionSource;
  /** Targets that each run is delivered to; likewise. */
  track?: Tracking;
}

/**
 * Returns the checkpoint that the run ended with; null if there was nothing to train. A failed run fails its firing, which
 * pauses the schedule.
 */
export async function retrain(input: RetrainInput): Promise<Checkpoint | null> {
  const { schedule, config: template, from, storeId, queues, production, track } = input;
  const activities = openScheduleActivities(queues);
  const firing = workflowInfo().workflowId;
  setCurrentDetails(`Waiting for a worker on queue ${queues.rollout}`);
  const asked = { schedule, firing, config: template, from, ...(production && { production }) };
  const { number, config, concluded, tooFew } = await activities.allocate(asked);
  if (concluded !== null) return concluded;
  if (tooFew !== undefined) return endWithout(tooFew);
  setCurrentDetails(configDetails(config));
  const state = await train(runWorkflowId(storeId, config.run), { config, queues, ...(track && { track }) });
  const checkpoint = await activities.conclude({ schedule, number, state });
  if (production !== undefined)
    await promote(activities, { schedule, number, state, served: production.run, checkpoint });
  return checkpoint;
}

function endWithout(tooFew: string): null {
  setCurrentDetails(`Nothing is trained: ${tooFew}.`);
  return null;
}

async function promote(activities: ScheduleActivities, input: PromoteInput): Promise<void> {
  const { served, checkpoint } = input;
  const { reason } = await activities.promote(input);
  const name = policyName(checkpoint);
  setCurrentDetails(reason === null ? `${name} is ${served}@production.` : `${name} was not promoted: ${reason}.`);
}

async function train(workflowId: string, run: Pick<TrainRunInput, 'config' | 'queues' | 'track'>): Promise<RunState> {
  const { config } = run;
  try {
    return await executeChild(trainRun, {
      workflowId,
      args: [{ ...run, carried: null, resume: null }],
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      staticSummary: configSummary(config),
      staticDetails: configDetails(config),
      memo: { config },
    });
  } catch (error) {
    throw explain(config.run, error);
  }
}

/** The schedule is paused with this sentence: it names the run and what happened to it. */
function explain(run: string, error: unknown): unknown {
  if (!(error instanceof ChildWorkflowFailure) || CancellationScope.current().consideredCancelled) return error;
  const type = error.cause instanceof ApplicationFailure ? (error.cause.type ?? 'Error') : 'Error';
  const what = isCancellation(error) ? 'was cancelled' : `failed: ${type}: ${error.cause?.message ?? error.message}`;
  return ApplicationFailure.create({ type, message: `the run ${run} ${what}`, nonRetryable: true, cause: error });
}
