/** The workflows that deliver a run to its targets, as clients start them and wait for them. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { TrackInput } from '../../core/contract/outbound.ts';
import { storeQueue, trackWorkflowId } from '../../core/names/queues.ts';
import { runResumedSignal } from '../../workflows/messages.ts';
import type { trackRun, TrackRunInput } from '../../workflows/track-run.ts';
import { patiently } from '../connection/connection.ts';

export interface TrackedPlace {
  readonly storeId: string;
  /** Queue of workflows, as the configuration names it. */
  readonly workflows: string;
}

/** Starts the workflow, or has the one that delivers already look once more before it ends. */
export async function startDelivery(client: Client, place: TrackedPlace, input: TrackInput): Promise<void> {
  const { storeId, workflows } = place;
  const { run, target } = input;
  const argument: TrackRunInput = { ...input, storeId };
  await patiently(
    () =>
      client.workflow.signalWithStart<typeof trackRun>('trackRun', {
        workflowId: trackWorkflowId(storeId, run, target),
        taskQueue: storeQueue(storeId, workflows),
        args: [argument],
        signal: runResumedSignal,
        staticSummary: `${run}: delivery to ${target}`,
      }),
    { limitMs: 30_000 },
  );
}

/** Targets that do not have all of an ended run by then. They get the rest when a worker runs again. */
export async function awaitTracking(
  client: Client,
  storeId: string,
  { run, targets, limitMs }: { run: string; targets: readonly string[]; limitMs: number },
): Promise<string[]> {
  const isLate = new Promise<false>((resolve) => setTimeout(resolve, limitMs, false).unref());
  const deliveries = targets.map((target) => {
    const handle = client.workflow.getHandle(trackWorkflowId(storeId, run, target));
    const ended = client
      .withDeadline(Date.now() + limitMs, () => handle.result())
      .then(
        () => true,
        (error: unknown) => error instanceof WorkflowNotFoundError,
      );
    return Promise.race([ended, isLate]);
  });
  const done = await Promise.all(deliveries);
  return targets.filter((_, index) => !done[index]);
}

/** A script ends when its trackers know all of its runs, or after this time. */
const PATIENCE_MS = 15_000;

/** Tracking of a script's runs. */
export function openTracking(
  client: Client,
  place: TrackedPlace,
  targets: readonly string[],
  print: (line: string) => void,
): { start(run: string): Promise<void>; end(): Promise<void> } {
  const runs = new Set<string>();
  return {
    async start(run) {
      runs.add(run);
      for (const target of targets) await startDelivery(client, place, { run, target, from: 'start' });
    },
    async end() {
      const limitMs = PATIENCE_MS;
      const late = await Promise.all(
        [...runs].map((run) => awaitTracking(client, place.storeId, { run, targets, limitMs })),
      );
      for (const [index, run] of [...runs].entries())
        if (late[index]!.length > 0)
          print(
            `${late[index]!.join(', ')} will get the rest of ${run} when a worker runs again; see temper track ${run}`,
          );
    },
  };
}
