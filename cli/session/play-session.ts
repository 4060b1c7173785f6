/** Session of a command with a run: open the stack, start or join the run, watch it to its end, release the stack. */
import { WorkflowFailedError, type Client, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { WorkFailed } from '../../core/contract/failures.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import type { EngineOverrides } from '../../core/rules/engine-rules.ts';
import { fillDefaults, SCHEMA_DEFAULTS } from '../../core/contract/schema-defaults.ts';
import { runWorkflowId } from '../../core/names/queues.ts';
import {
  connectClient,
  describeServerFailure,
  patiently,
  type TemporalClient,
} from '../../workers/connection/connection.ts';
import { describeBase, loadedBase } from '../../workers/config/loaded-base.ts';
import { openLocalStack, type LocalStack } from '../../workers/local-stack/client.ts';
import { listDeliveries } from '../../outbound/list-deliveries.ts';
import { awaitTracking } from '../../workers/tracking/tracking.ts';
import { wakeIfComplete } from '../../workers/rewards/wake-run.ts';
import type { StackReleased } from '../../workers/local-stack/daemon-connection.ts';
import { withoutProfile } from '../../workers/process/child-environment.ts';
import type { trainRun } from '../../workflows/train-run.ts';
import { readProgress, unlessAway } from '../watch/follow-run.ts';
import { showPending } from '../watch/pending.ts';
import { showRun } from '../watch/watch-run.ts';
import { startRun } from '../../operations/start-run.ts';
import type { Viewer } from '../watch/viewer.ts';
import { checkSameConfig } from '../planning/find-existing.ts';
import type { RunPlan } from '../planning/run-plan.ts';
import { setMaxListeners } from 'node:events';

export interface Session {
  readonly overrides: EngineOverrides;
  readonly plan: RunPlan;
  /** Trackers that the run is delivered to, if this command starts it. */
  readonly targets: readonly string[];
  readonly project: string;
  readonly viewer: Viewer;
  readonly signal: AbortSignal;
  readonly env: NodeJS.ProcessEnv;
  /** Called with what continues after the stack was released. */
  readonly onLeft: (left: StackReleased) => void;
}

/** Returns when the run is complete. Throws WorkFailed if it failed, and any error if the user detached. */
export async function playSession(session: Session): Promise<void> {
  const { plan, project, viewer, signal, env, overrides, onLeft } = session;
  const stack = await openLocalStack({
    project,
    agentFile: plan.agentFile,
    models: plan.models,
    overrides,
    decided: plan.decided,
    onEvent: (event) => viewer.stack(event),
    signal,
    env,
  });
  try {
    if (stack.adopted) viewer.note(joinedNote(stack.engine));
    const { store, config } = plan;
    const workflowId = runWorkflowId(await store.id(), config.run);
    if (stack.uiUrl !== null) viewer.note(`Temporal's UI: ${pageOf(workflowId, stack.uiUrl, stack.namespace)}`);
    await playOn(stack, session);
  } finally {
    onLeft(await stack.close());
  }
}

/** Note about the joined stack, whose engine another command chose. */
export function joinedNote(engine: LocalStack['engine']): string {
  const joined = 'joined the running local stack';
  if (engine.dtype === 'auto' && !engine.loadIn4bit) return joined;
  return `${joined}, which loads base models in ${describeBase(loadedBase(engine, true))}`;
}

function pageOf(workflowId: string, uiUrl: string, namespace: string): string {
  return new URL(`/namespaces/${namespace}/workflows/${encodeURIComponent(workflowId)}${new URL(uiUrl).search}`, uiUrl)
    .href;
}

async function playOn(stack: LocalStack, session: Session): Promise<void> {
  const { plan, targets, project, signal, env } = session;
  const server = await connectClient(
    { address: stack.temporalAddress, namespace: stack.namespace },
    stack.uiUrl === null ? env : withoutProfile(env),
  );
  try {
    const handle = await joinRun(server.client, { ...plan, targets }, project);
    const ended = new AbortController();
    const result = awaitRun(server.connection, () => handle.result(), { signal }).finally(() => ended.abort());
    // Its failure is thrown below, when the view is up to date.
    result.catch(() => undefined);
    const over = AbortSignal.any([ended.signal, signal]);
    await Promise.all([
      showRun(plan.store, plan.config.run, session.viewer, { signal: over, isOver: () => false }),
      showPending(server, { store: plan.store, run: plan.config.run }, session.viewer, over),
    ]);
    signal.throwIfAborted();
    const last = await unlessAway(readProgress(plan.store, plan.config.run));
    if ('seen' in last) session.viewer.progress(last.seen);
    await Promise.allSettled([result]);
    await awaitTrackers(server.client, session);
    await result;
  } catch (error) {
    throw explainRunFailure(plan.config.run, error);
  } finally {
    await server.close();
  }
}

/** The end of a run is delivered within seconds, if its trackers answer. */
async function awaitTrackers(client: Client, { plan, targets, viewer, signal }: Session): Promise<void> {
  if (signal.aborted) return;
  const { run } = plan.config;
  const limitMs = TRACKERS_PATIENCE_MS;
  const late = await awaitTracking(client, await plan.store.id(), { run, targets, limitMs });
  for (const { target, url, failure } of await listDeliveries(plan.store, run)) {
    if (url !== null && targets.includes(target)) viewer.note(`${target}: ${url}`);
    if (failure !== null && late.includes(target)) viewer.note(`${target} did not get all: ${failure}`);
  }
  if (late.length > 0)
    viewer.note(
      `${late.join(', ')} ${late.length === 1 ? 'does' : 'do'} not know all of ${run} yet; the next start of the local stack continues, or without one: temper track ${run} --to ${late.join(' --to ')}`,
    );
}

const TRACKERS_PATIENCE_MS = 20_000;

/** Starts or joins the run: concurrent commands, and a command after a crash, get the same one. */
async function joinRun(
  client: Client,
  { config, template, examples, adapterFiles, store, isSteered, targets }: RunPlan & Pick<Session, 'targets'>,
  project: string,
): Promise<WorkflowHandle<typeof trainRun>> {
  for (const bytes of [template?.bytes, examples, ...adapterFiles]) if (bytes) await store.putBlob(bytes);
  const resume = isSteered ? { rollback: null, settings: null } : null;
  const handle = await startRun(client, { store, config, project, resume, targets, conflict: 'USE_EXISTING' });
  // A run joined before it wrote its run.json may be a different one, which the store could not tell.
  const { memo } = await patiently(() => handle.describe(), { limitMs: 30_000 });
  if (memo?.['config']) checkSameConfig(fillDefaults(memo['config'] as RunConfig, SCHEMA_DEFAULTS), config);
  if (config.external !== undefined) await wakeIfComplete(client, store, config.run);
  return handle;
}

/** Failure message of the run itself, as in `temper show`: deeper causes do not name the step. */
export function explainRunFailure(run: string, error: unknown): unknown {
  const serverFailure = describeServerFailure(error);
  if (serverFailure !== null) return new WorkFailed(serverFailure, { cause: error });
  if (!(error instanceof WorkflowFailedError)) return error;
  const { cause = error } = error;
  if (cause.name === 'CancelledFailure')
    return new WorkFailed(`the run ${run} was cancelled; its committed steps stay`, { cause: error });
  const reason = cause instanceof ApplicationFailure ? `${cause.type}: ${cause.message}` : cause.message;
  return new WorkFailed(`the run ${run} failed: ${reason}`, { cause: error });
}

/** Temporal's client leaks a listener on its signal with each long poll, about three a minute. */
const LISTEN_MS = 3_600_000;

export interface AwaitOptions {
  readonly signal: AbortSignal;
  readonly listenMs?: number;
}

/** Result of `ask`, asked again each hour and during outages; fails once the signal is aborted. */
export async function awaitRun<T>(
  connection: Pick<TemporalClient['connection'], 'withAbortSignal'>,
  ask: () => Promise<T>,
  { signal, listenMs = LISTEN_MS }: AwaitOptions,
): Promise<T> {
  for (;;) {
    const turn = AbortSignal.any([signal, AbortSignal.timeout(listenMs)]);
    setMaxListeners(0, turn);
    try {
      return await patiently(() => connection.withAbortSignal(turn, ask), { limitMs: null, signal: turn });
    } catch (error) {
      if (signal.aborted || !turn.aborted) throw error;
    }
  }
}
