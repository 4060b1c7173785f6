/**
 * Wakes runs that wait for rewards from outside. The store has the rewards already, so that a signal may be lost: every
 * later giver, whoever attaches to the run, and a worker that starts send it again.
 */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';

import { REWARDS_SIGNAL } from '../../core/rules/external-rewards.ts';
import { runWorkflowId } from '../../core/names/queues.ts';
import { runKey } from '../../store/layout.ts';
import { listAwaited } from '../../store/records/rewards/awaited-groups.ts';
import { readStored, RunFileSchema } from '../../store/records/file-schemas.ts';
import { isEnded, listRuns, readState } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';

const ANSWER_WITHIN_MS = 5000;

/** False if the run is not running on this server. */
export async function wakeRun(client: Client, storeId: string, run: string): Promise<boolean> {
  try {
    const handle = client.workflow.getHandle(runWorkflowId(storeId, run));
    await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => handle.signal(REWARDS_SIGNAL));
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/** Wakes a run that has complete groups which are not decided: its history grows only if there is something to do. */
export async function wakeIfComplete(client: Client, store: Store, run: string): Promise<boolean> {
  const awaited = await listAwaited(store, run);
  if (!awaited.some(({ missing }) => missing.length === 0)) return false;
  return wakeRun(client, await store.id(), run);
}

/** Runs of these agents; a run that cannot be read is left alone. */
export async function wakeWaitingRuns(client: Client, store: Store, agents: readonly string[]): Promise<string[]> {
  const woken: string[] = [];
  for (const run of agents.length === 0 ? [] : await listRuns(store)) {
    const waits = await mayWait(store, run, agents).catch(() => false);
    if (waits && (await wakeIfComplete(client, store, run))) woken.push(run);
  }
  return woken;
}

async function mayWait(store: Store, run: string, agents: readonly string[]): Promise<boolean> {
  const file = await readStored(store, runKey(run), RunFileSchema);
  if (file?.config.external === undefined || !agents.includes(file.config.agent)) return false;
  const state = await readState(store, run);
  return state === null || !isEnded(state);
}
