/** The local stack as a script holds it: its store, engine and Temporal server for one base model. */
import { hashOf } from '../../core/text/hashes.ts';
import { connectEngine } from '../../play/connections/engine-connection.ts';
import type { OpenBackend } from '../../sdk/loop/backend.ts';
import type { Store } from '../../store/store.ts';
import { agentCodeSha256 } from '../user-code/agent-code.ts';
import { resolveBaseModel } from '../base-models/base-model.ts';
import { loadConfig } from '../config/config.ts';
import { connectClient, describeServerFailure, patiently, type TemporalClient } from '../connection/connection.ts';
import { cacheFolder, findProject } from '../project/folders.ts';
import { openLocalStack } from '../local-stack/client.ts';
import { namesOfTargets } from '../config/targets.ts';
import { openTracking } from '../tracking/tracking.ts';
import { pinBaseModel } from '../base-models/pin-base-model.ts';
import { openProjectStore } from '../config/project-store.ts';
import { withoutProfile } from '../process/child-environment.ts';
import type { StackEvent } from '../events.ts';
import { WorkflowFailedError } from '@temporalio/client';
import type { TrainResult } from '../../core/contract/contract.ts';
import { FAILURES, TemperError, type FailureType } from '../../core/contract/failures.ts';
import { storeQueue, trainWorkflowId } from '../../core/names/queues.ts';
import type { trainStep } from '../../workflows/train-step.ts';

/** Resources for one base model: the stack with its folder, a client, connections. */
export interface Held {
  readonly opened: OpenBackend;
  close(): Promise<void>;
}

export interface WantedModel {
  readonly baseModel: string;
  /** Name recorded by the continued run; null for a new one. */
  readonly recorded: string | null;
}

export async function holdStack(
  { baseModel, recorded }: WantedModel,
  { folder, onEvent = printEvent, env = process.env }: LocalBackendOptions,
  { store, atClose }: Pick<OpenBackend, 'store' | 'atClose'>,
): Promise<Held> {
  const project = findFolder(folder);
  const config = await loadConfig(project, env);
  const asked = resolveBaseModel(baseModel, process.cwd(), project, config.models);
  await store.checkWritable();
  const place = { storeId: await store.id(), queues: config.queues };
  const { name, models } = await pinBaseModel(asked, recorded, { config, env, cache: cacheFolder(env), onEvent });
  const stack = await openLocalStack({ project, agentFile: null, models, onEvent, env });
  const target = { address: stack.temporalAddress, namespace: stack.namespace };
  const server = await connectClient(target, stack.uiUrl === null ? env : withoutProfile(env));
  const engineAddress = { url: stack.engineUrl, key: stack.engineKey };
  const engine = connectEngine(engineAddress);
  const print = (message: string) => onEvent({ kind: 'notice', message });
  const workers = { storeId: place.storeId, workflows: config.queues.workflows };
  const tracked = openTracking(server.client, workers, namesOfTargets(config), print);
  return {
    opened: {
      store,
      engine,
      engineAddress,
      baseModel: name,
      codeSha256: await hashScript(),
      runStep: (step) => runStep(server, place, step),
      track: (run) => tracked.start(run),
      print,
      atClose,
    },
    async close() {
      await tracked.end();
      await engine.close();
      await server.close();
      await stack.close();
    },
  };
}

export function openStoreOf({ folder, env = process.env }: LocalBackendOptions): Promise<Store> {
  return openProjectStore(findFolder(folder), env);
}

function findFolder(folder: string | undefined): string {
  return folder ?? findProject(process.cwd());
}

/** A changed script continues its run, and the run notes the change. */
async function hashScript(): Promise<string> {
  const script = process.argv[1];
  return script === undefined ? hashOf(null) : agentCodeSha256(script).catch(() => hashOf(null));
}

/** Shorter starts are not reported. */
const SHORT_WAIT_SECONDS = 15;

/** The important events, to stderr. */
function printEvent(event: StackEvent): void {
  const text = describeEvent(event);
  if (text !== null) process.stderr.write(`temper: ${text}\n`);
}

function describeEvent(event: StackEvent): string | null {
  if (event.kind === 'notice') return event.message;
  if (event.kind === 'died') return `${event.name} died (${event.exit}); restarting it`;
  if (event.kind === 'progress') return event.finished ? event.message : null;
  if (event.kind !== 'waiting' || event.seconds % SHORT_WAIT_SECONDS !== 0 || event.seconds === 0) return null;
  return `waiting for ${event.for}, ${event.seconds} s of at most ${event.limitSeconds} s`;
}

type Step = Parameters<OpenBackend['runStep']>[0];

/** The step's id is its workflow's id, so concurrent calls join it. Only the store has its result. */
async function runStep(
  { client }: TemporalClient,
  { storeId, queues }: { storeId: string; queues: { workflows: string; gpu: string } },
  { project, model, work }: Step,
): Promise<TrainResult> {
  const step = work.kind === 'train' ? work.input.step : 0;
  const title = `${project}.${model}: step ${step}`;
  try {
    const handle = await patiently(
      () =>
        client.workflow.start<typeof trainStep>('trainStep', {
          workflowId: trainWorkflowId(storeId, project, model, step),
          taskQueue: storeQueue(storeId, queues.workflows),
          args: [{ project, gpuQueue: storeQueue(storeId, queues.gpu), work }],
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
          staticSummary: title,
        }),
      { limitMs: 30_000 },
    );
    return await patiently(() => handle.result(), { limitMs: null });
  } catch (error) {
    throw explain(title, error);
  }
}

/** The innermost cause is what a person can act on: Temporal wraps it twice. */
function explain(title: string, error: unknown): unknown {
  const serverFailure = describeServerFailure(error);
  if (serverFailure !== null) return new TemperError('EngineFailed', serverFailure, { cause: error });
  if (!(error instanceof WorkflowFailedError)) return error;
  let cause: Error = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  const named = (cause as { type?: unknown }).type;
  const type = typeof named === 'string' && named in FAILURES ? (named as FailureType) : 'TrainerFailed';
  return new TemperError(type, `${title} failed: ${cause.message}`, { cause: error });
}

export interface LocalBackendOptions {
  /** The project, whose `.temper/` holds all state; by default the nearest parent folder that is a project. */
  folder?: string;
  /** Receives events of the local stack; by default the important ones are printed to stderr. */
  onEvent?: (event: StackEvent) => void;
  env?: NodeJS.ProcessEnv;
}
