/** Updates of a running workflow, and what they would do. Updates need the server and a worker. */
import { WorkflowNotFoundError, WorkflowUpdateFailedError, type Client, type WorkflowHandle } from '@temporalio/client';
import type { RunConfig, RunState } from '../core/contract/contract.ts';
import { badConfig, WorkFailed } from '../core/contract/failures.ts';
import { plural } from '../core/reports/format.ts';
import { runWorkflowId } from '../core/names/queues.ts';
import { applyChanges, findSettingsProblem, settingOf, type Setting } from '../core/rules/settings.ts';
import { readAllChanges, readBranches } from '../store/records/runs/lineage.ts';
import { isEnded, readRun } from '../store/records/runs/run-reader.ts';
import { NotFound } from '../views/context/context.ts';
import { isPassing } from '../workers/connection/connection.ts';
import { pauseUpdate, resumeUpdate, setUpdate, stopUpdate } from '../workflows/messages.ts';
import type { Place } from './operation.ts';
import { findStoreId } from '../store/bytes/store-id.ts';
import { ANSWER_WITHIN_MS, requireServer } from './server.ts';
import { parseSettings } from './settings.ts';

interface Reasoned {
  readonly run: string;
  readonly reason: string | null;
}

export interface Rollback extends Reasoned {
  readonly step: number;
  /** `KEY=VALUE` */
  readonly set: readonly string[];
}

interface Changing extends Reasoned {
  /** `KEY=VALUE` */
  readonly settings: readonly string[];
}

export async function pauseRun(place: Place, { run, reason }: Reasoned) {
  const answer = await steerRun(place, run, (handle) =>
    handle.executeUpdate(pauseUpdate, { args: [{ reason }], updateId: place.requestId }),
  );
  return { run, ...answer };
}

export async function resumeRun(place: Place, run: string) {
  const { requestId: updateId } = place;
  return { run, ...(await steerRun(place, run, (handle) => handle.executeUpdate(resumeUpdate, { updateId }))) };
}

/** With `now`, the workflow is cancelled, and ends after no step. */
export async function stopRun(place: Place, { run, now, reason }: Reasoned & { now: boolean }) {
  if (now) {
    await steerRun(place, run, (handle) => handle.cancel());
    return { run, first: true, afterStep: null };
  }
  const answer = await steerRun(place, run, (handle) =>
    handle.executeUpdate(stopUpdate, { args: [{ reason }], updateId: place.requestId }),
  );
  return { run, ...answer };
}

export async function setRun(place: Place, { run, settings: texts, reason }: Changing) {
  const settings = parseSettings(texts);
  const { changes } = await steerRun(place, run, (handle) =>
    handle.executeUpdate(setUpdate, { args: [{ settings, reason }], updateId: place.requestId }),
  );
  return { run, changes };
}

async function steerRun<T>(place: Place, run: string, tell: (handle: WorkflowHandle) => Promise<T>): Promise<T> {
  const server = await requireServer(place);
  try {
    const store = await place.store();
    const storeId = await findStoreId(store);
    const answer = storeId === null ? null : await tellRun(server.client, { storeId, run }, tell);
    if (answer !== null) return answer;
    throw badConfig(
      `no run ${run} of the store ${store.uri} is running on this server; see temper runs, or continue it with temper train or temper rollback`,
    );
  } finally {
    await server.close();
  }
}

/** Null if no run of this name is running. */
export async function tellRun<T>(
  client: Client,
  { storeId, run }: { storeId: string; run: string },
  tell: (handle: WorkflowHandle) => Promise<T>,
): Promise<T | null> {
  try {
    const handle = client.workflow.getHandle(runWorkflowId(storeId, run));
    return await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => tell(handle));
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw explain(run, error);
  }
}

function explain(run: string, cause: unknown): unknown {
  if (cause instanceof WorkflowUpdateFailedError) {
    // The validator's message; a failure without one comes from the run itself.
    const refusal = cause.cause?.message;
    return refusal === undefined ? new WorkFailed(cause.message, { cause }) : badConfig(refusal, { cause });
  }
  if (isPassing(cause)) {
    return new WorkFailed(
      `${run} did not answer within ${ANSWER_WITHIN_MS / 1000} s (is a worker running?); see temper doctor`,
      { cause },
    );
  }
  return cause;
}

interface FoundRun {
  readonly config: RunConfig;
  readonly state: RunState | null;
}

export async function requireFound(place: Place, run: string): Promise<FoundRun> {
  const found = await readRun(await place.store(), run).catch(() => null);
  if (found === null) throw new NotFound(`no run ${JSON.stringify(run.slice(0, 80))} in this store`);
  return { config: found.file.config, state: found.state };
}

/** The run, if it has not ended. */
export async function requireLive(place: Place, run: string): Promise<FoundRun> {
  const found = await requireFound(place, run);
  const { state } = found;
  if (state === null || !isEnded(state)) return found;
  throw badConfig(
    `${run} has ended (${state.state}) after step ${state.step}; roll it back to continue it, or fork a checkpoint`,
  );
}

export async function sayFinishing(place: Place, run: string): Promise<string> {
  const { state } = await requireLive(place, run);
  if (state === null) return `${run} has not begun its first step.`;
  return `${run} has finished step ${state.step} of ${state.steps} and completes the step in progress.`;
}

export async function sayResumed(place: Place, run: string): Promise<string> {
  const { state } = await requireLive(place, run);
  return `${run} continues${state === null ? '' : ` with step ${state.step + 1} of ${state.steps}`}.`;
}

export async function saySet(place: Place, { run, settings: texts }: Changing): Promise<string> {
  const { config, state } = await requireLive(place, run);
  const settings = parseSettings(texts);
  const now = applyChanges(config, (await readAllChanges(await place.store(), run)).changes);
  const problem = findSettingsProblem(now, state?.step ?? 0, settings);
  if (problem !== null) throw badConfig(problem);
  const changes = Object.entries(settings).map(
    ([name, to]) => `${name} from ${settingOf(now, name as Setting) ?? 'none'} to ${to}`,
  );
  return `${run} gets ${changes.join(', ')}, from its next step on. The step in progress finishes as planned.`;
}

export async function sayRollback(place: Place, { run, step, set }: Rollback): Promise<string> {
  const { state } = await requireFound(place, run);
  const { steps } = set.length === 0 ? {} : parseSettings(set);
  if (state === null) throw badConfig(`${run} has no step to go back to yet; wait for its first step`);
  if (step > state.step)
    throw badConfig(
      `step must be at most ${state.step}, the last finished step of ${run}, got ${step}; pass an earlier one`,
    );
  const branches = await readBranches(await place.store(), run);
  const next = Math.max(0, ...branches.map(({ branch }) => branch)) + 1;
  const [first, last] = [step + 1, state.step];
  const kept = first > last ? '' : first === last ? `Step ${last} stays` : `Steps ${first} to ${last} stay`;
  const begins = isEnded(state)
    ? `${run} has ended (${state.state}) and is started again`
    : `${run} drops the step in progress`;
  return [
    `${begins}: it goes back to step ${step} and trains ${plural((steps ?? state.steps) - step, 'step')} on branch ${next}, with other seeds.`,
    ...(kept === '' ? [] : [`${kept} readable on branch ${state.branch}.`]),
    'Nothing is deleted.',
  ].join(' ');
}
