/**
 * Delivers a run from its store to one target (a tracker, a trace exporter). The run starts it and does not wait for it:
 * a target that is unavailable for weeks is tried again for weeks, and delays neither the run nor other targets.
 */
import {
  continueAsNew,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  setHandler,
  startChild,
  TemporalFailure,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';

import type { TrackInput } from '../core/contract/outbound.ts';
import { outboundQueue, trackWorkflowId } from '../core/names/queues.ts';
import { openTrackActivity } from './activities.ts';
import { runResumedSignal } from './messages.ts';
import { temperRun } from './search-attributes.ts';

/** The input is in the history, which everybody can read: a target is known by its name. */
export interface TrackRunInput extends TrackInput {
  storeId: string;
}

/** The targets that a run is delivered to. */
export interface Tracking {
  storeId: string;
  targets: string[];
}

const ALREADY_STARTED = 'WorkflowExecutionAlreadyStartedError';
const ACTIVITIES_PER_RUN = 100;

export async function trackRun(input: TrackRunInput): Promise<void> {
  const { storeId, ...delivered } = input;
  let asked = 1;
  setHandler(runResumedSignal, () => void (asked += 1));
  upsertSearchAttributes([{ key: temperRun, value: delivered.run }]);
  const outbound = openTrackActivity(outboundQueue(storeId));
  for (let done = 0, answered = 0; answered < asked; done++) {
    if (done >= ACTIVITIES_PER_RUN || workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof trackRun>(input);
    const before = asked;
    const { over } = await outbound.track(delivered);
    if (over) answered = before;
  }
}

/** Starts a workflow for each target, or wakes the one that still delivers what the run did before. */
export async function startTracking(run: string, { storeId, targets }: Tracking): Promise<void> {
  await Promise.all(
    targets.map(async (target) => {
      const input: TrackRunInput = { run, target, from: 'start', storeId };
      if (!(await startOrWake(input))) await startOrWake(input);
    }),
  );
}

/** False if it ended meanwhile. */
async function startOrWake(input: TrackRunInput): Promise<boolean> {
  const { storeId, run, target } = input;
  const workflowId = trackWorkflowId(storeId, run, target);
  try {
    await startChild(trackRun, {
      workflowId,
      args: [input],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: `${run}: delivery to ${target}`,
    });
    return true;
  } catch (error) {
    if (!(error instanceof TemporalFailure) || error.name !== ALREADY_STARTED) throw error;
  }
  return getExternalWorkflowHandle(workflowId)
    .signal(runResumedSignal)
    .then(
      () => true,
      () => false,
    );
}
