/** Trains on this machine: the local stack, opened as `temper train` opens it, and held by the script. */
import type { TrainResult } from '../core/contract.ts';
import { FAILURES, TemperError, type FailureType } from '../core/failures.ts';
import { hashOf } from '../core/hashes.ts';
import { trainWorkflowId } from '../core/queues.ts';
import type { Store } from '../store/store.ts';
import type { TemporalClient } from '../workers/connection.ts';
import type { StackEvent } from '../workers/events.ts';
import type { LocalStack } from '../workers/local-stack/client.ts';
import type { trainStep, StepWork } from '../workflows/train-step.ts';
import type { Backend, OpenBackend } from './loop/backend.ts';
import type { TrainableModel } from './loop/model.ts';
import { checkCount, checkOptions } from './options/check-options.ts';
import type { EngineConnection } from '../play/connections/engine-connection.ts';

export interface LocalBackendOptions {
  /** The project, whose `.temper/` holds all state; by default the nearest parent folder that is a project. */
  folder?: string;
  /** Receives events of the local stack; by default the important ones are printed to stderr. */
  onEvent?: (event: StackEvent) => void;
  env?: NodeJS.ProcessEnv;
}

export interface ForkOptions {
  fromModel: string;
  /** Default: the project of the model. */
  fromProject?: string;
  /** Uses the newest checkpoint up to this step; default: the newest one. */
  notAfterStep?: number;
}

interface Step {
  project: string;
  model: string;
  work: StepWork;
}

/** What one base model needs: the stack told of its folder, a client, connections. */
interface Held {
  stack: LocalStack;
  server: TemporalClient;
  engine: EngineConnection;
  opened: OpenBackend;
}

export class LocalBackend implements Backend {
  private readonly options: LocalBackendOptions;
  private readonly held = new Map<string, Promise<Held>>();
  private readonly tasks: (() => Promise<void>)[] = [];
  private store: Promise<Store> | null = null;

  constructor(options: LocalBackendOptions = {}) {
    this.options = checkOptions('LocalBackend', options);
  }

  /** Starts the local stack, or joins the running one. A second call returns the same backend. */
  async open(baseModel: string): Promise<OpenBackend> {
    const held = this.held.get(baseModel) ?? this.hold(baseModel);
    this.held.set(baseModel, held);
    held.catch(() => this.held.delete(baseModel));
    return (await held).opened;
  }

  /** Starts the model from another model's adapter and optimizer state. Call it before `model.register`. */
  async forkCheckpoint(model: TrainableModel, options: ForkOptions): Promise<void> {
    const { fromModel, fromProject, notAfterStep } = checkOptions('backend.forkCheckpoint', options);
    checkCount('notAfterStep', notAfterStep, { least: 0, example: 40 });
    const { findNewestCheckpoint } = await import('../store/records/find-checkpoint.ts');
    const run = `${fromProject ?? model.project}.${fromModel}`;
    const store = await this.openStore();
    const found = await findNewestCheckpoint(store, run, notAfterStep ?? Infinity);
    if (found === null)
      throw new TemperError(
        'BadConfig',
        `${run} must have a committed step${notAfterStep === undefined ? '' : ` up to ${notAfterStep}`} to be forked, but the store ${store.uri} has none; see temper runs`,
      );
    model.beginFrom(found);
  }

  /** Leaves the local stack, which stops unless another command or script uses it. */
  async close(): Promise<void> {
    for (const task of this.tasks.splice(0)) await task();
    const all = await Promise.allSettled(this.held.values());
    this.held.clear();
    for (const each of all) {
      if (each.status === 'rejected') continue;
      const { engine, server, stack } = each.value;
      await engine.close();
      await server.close();
      await stack.close();
    }
    const store = await this.store;
    this.store = null;
    await store?.close();
  }

  private openStore(): Promise<Store> {
    this.store ??= openProjectStore(this.options);
    return this.store;
  }

  private async hold(baseModel: string): Promise<Held> {
    const [
      { openLocalStack },
      { loadConfig },
      { resolveBaseModel },
      { connectEngine },
      { connectClient },
      { withoutProfile },
    ] = await Promise.all([
      import('../workers/local-stack/client.ts'),
      import('../workers/config.ts'),
      import('../workers/base-model.ts'),
      import('../play/connections/engine-connection.ts'),
      import('../workers/connection.ts'),
      import('../workers/temporal-environment.ts'),
    ]);
    const { env = process.env, onEvent = tell } = this.options;
    const project = await findFolder(this.options.folder);
    const config = await loadConfig(project, env);
    const { name, models } = resolveBaseModel(baseModel, process.cwd(), project, config.models);
    const store = await this.openStore();
    await store.checkWritable();
    const stack = await openLocalStack({ project, agentFile: null, models, onEvent, env });
    const target = { address: stack.temporalAddress, namespace: stack.namespace };
    const server = await connectClient(target, stack.uiUrl === null ? env : withoutProfile(env));
    const engineAddress = { url: stack.engineUrl, key: stack.engineKey };
    const engine = connectEngine(engineAddress);
    const opened: OpenBackend = {
      store,
      engine,
      engineAddress,
      baseModel: name,
      codeSha256: await hashScript(),
      runStep: (step) => runStep(server, config.queues, step),
      tell: (message) => onEvent({ kind: 'notice', message }),
      atClose: (task) => void this.tasks.push(task),
    };
    return { stack, server, engine, opened };
  }
}

/** Its workflow's id is the step's: whoever asks meanwhile joins it. What it made is known by the store alone. */
async function runStep(
  { client }: TemporalClient,
  queues: { workflows: string; gpu: string },
  { project, model, work }: Step,
): Promise<TrainResult> {
  const { patiently } = await import('../workers/connection.ts');
  const step = work.kind === 'train' ? work.input.step : 0;
  const title = `${project}.${model}: step ${step}`;
  try {
    const handle = await patiently(
      () =>
        client.workflow.start<typeof trainStep>('trainStep', {
          workflowId: trainWorkflowId(project, model, step),
          taskQueue: queues.workflows,
          args: [{ project, gpuQueue: queues.gpu, work }],
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
          staticSummary: title,
        }),
      { limitMs: 30_000 },
    );
    return await patiently(() => handle.result(), { limitMs: null });
  } catch (error) {
    throw await explain(title, error);
  }
}

/** The innermost cause is what a person can act on: Temporal wraps it twice. */
async function explain(title: string, error: unknown): Promise<unknown> {
  // Agent files import this module too, and have no use for a client.
  const [{ WorkflowFailedError }, { describeServerFailure }] = await Promise.all([
    import('@temporalio/client'),
    import('../workers/connection.ts'),
  ]);
  const serverFailure = describeServerFailure(error);
  if (serverFailure !== null) return new TemperError('EngineFailed', serverFailure, { cause: error });
  if (!(error instanceof WorkflowFailedError)) return error;
  let cause: Error = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  const named = (cause as { type?: unknown }).type;
  const type = typeof named === 'string' && named in FAILURES ? (named as FailureType) : 'TrainerFailed';
  return new TemperError(type, `${title} failed: ${cause.message}`, { cause: error });
}

async function openProjectStore({ folder, env = process.env }: LocalBackendOptions): Promise<Store> {
  const [{ loadConfig }, { projectFolders, storeUri }, { openStore }] = await Promise.all([
    import('../workers/config.ts'),
    import('../workers/folders.ts'),
    import('../store/bytes/open-store.ts'),
  ]);
  const project = await findFolder(folder);
  const folders = projectFolders(project);
  const { store } = await loadConfig(project, env);
  return openStore(storeUri(store, folders), { spoolFolder: folders.spool });
}

async function findFolder(folder: string | undefined): Promise<string> {
  const { findProject } = await import('../workers/project.ts');
  return folder ?? findProject(process.cwd());
}

/** A changed script continues its run, and the run notes the change. */
async function hashScript(): Promise<string> {
  const { agentCodeSha256 } = await import('../workers/agent-code.ts');
  const script = process.argv[1];
  return script === undefined ? hashOf(null) : agentCodeSha256(script).catch(() => hashOf(null));
}

/** A start as short as this is no news. */
const SHORT_WAIT_SECONDS = 15;

function tell(event: StackEvent): void {
  const text = describe(event);
  if (text !== null) process.stderr.write(`temper: ${text}\n`);
}

function describe(event: StackEvent): string | null {
  if (event.kind === 'notice') return event.message;
  if (event.kind === 'died') return `${event.name} died (${event.exit}); restarting it`;
  if (event.kind === 'progress') return event.finished ? event.message : null;
  if (event.kind !== 'waiting' || event.seconds % SHORT_WAIT_SECONDS !== 0 || event.seconds === 0) return null;
  return `waiting for ${event.for}, ${event.seconds} s of at most ${event.limitSeconds} s`;
}
