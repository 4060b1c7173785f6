/** The command `temper deploy`: the operation, with a local stack where none runs, and its stages if asked to. */
import { setTimeout as sleep } from 'node:timers/promises';

import { WorkFailed } from '../../core/contract/failures.ts';
import { deploymentWorkflowId } from '../../core/names/queues.ts';
import { askDeployment, startDeployment } from '../../operations/start-deployment.ts';
import { deploy } from '../../operations/deployments.ts';
import { describeDeployment } from '../../operations/describe-deployment.ts';
import { inputOf } from '../../operations/operation.ts';
import { lookAt, type SeenWorkflow } from '../../operations/pending/read-pending.ts';
import { worstWait } from '../../operations/pending/under-way.ts';
import { requireServer } from '../../operations/server.ts';
import {
  readDeployment,
  stateOfDeployment,
  type DeploymentStatus,
  type RecordedDeployment,
} from '../../store/records/production/deployments.ts';
import type { Store } from '../../store/store.ts';
import { knownModels } from '../../workers/base-models/known-models.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { connectClient, type TemporalClient } from '../../workers/connection/connection.ts';
import { openLocalStack } from '../../workers/local-stack/client.ts';
import { runningTarget } from '../../workers/local-stack/running-stack.ts';
import { withoutProfile } from '../../workers/process/child-environment.ts';
import { EXIT } from '../command-line/errors.ts';
import { placeOf, textOf } from '../command-line/to-command.ts';
import { printJson } from '../terminal/output.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { DeployContext } from './command.ts';

const LOOK_MS = 500;
/** Workers that start are not told to be missing. */
const LOOKS_BY_SERVER = 10;
const ANSWER_WITHIN_MS = 3000;
/** The server is away: its workflow goes on once it is back. */
const noAnswer = () => null;

export async function deployAndFollow(context: DeployContext): Promise<number> {
  const { project, env, flags, args, output } = context;
  const place = placeOf(context);
  const store = await place.store();
  const input = inputOf(deploy, args, flags);
  let deployment = await askDeployment(place, input);
  if (stateOfDeployment(deployment) !== 'deployed') {
    const isServed = runningTarget(project, env) !== null;
    await withServer(context, isServed, async (server) => {
      await startDeployment(place, server, deployment);
      if (flags.wait || !isServed) await follow(context, server, store, deployment);
    });
    deployment = (await readDeployment(store, deployment.run, deployment.id))!;
  }
  const shown = describeDeployment(deployment);
  if (flags.json) printJson(output, shown);
  else for (const line of await deploy.lines(shown, input)) output.line(await textOf(line));
  return EXIT.ok;
}

async function withServer(
  context: DeployContext,
  isServed: boolean,
  work: (server: TemporalClient) => Promise<void>,
): Promise<void> {
  if (!isServed) return withLocalStack(context, work);
  const server = await requireServer(context);
  try {
    await work(server);
  } finally {
    await server.close();
  }
}

async function withLocalStack(
  { project, env, output, signal }: DeployContext,
  work: (server: TemporalClient) => Promise<void>,
): Promise<void> {
  const stack = await openLocalStack({
    project,
    agentFile: null,
    models: knownModels(project, await loadConfig(project, env)),
    onEvent: createEventPrinter((line) => output.errorLine(line)),
    signal,
    env,
  });
  try {
    const target = { address: stack.temporalAddress, namespace: stack.namespace };
    const server = await connectClient(target, stack.uiUrl === null ? env : withoutProfile(env));
    try {
      await work(server);
    } finally {
      await server.close();
    }
  } finally {
    await stack.close();
  }
}

/** The store is where the stages are: it is asked even while the server is away. */
export async function follow(
  { output, signal }: Pick<DeployContext, 'output' | 'signal'>,
  server: TemporalClient,
  store: Store,
  begun: RecordedDeployment,
  lookMs = LOOK_MS,
): Promise<void> {
  const workflowId = deploymentWorkflowId(await store.id(), begun.run, begun.id);
  const teller = new Teller((line) => output.errorLine(line), begun);
  for (let looks = 1; ; looks++) {
    // Asked first: what the workflow wrote at its end is read below.
    const seen =
      looks % LOOKS_BY_SERVER === 0 ? await lookAt(server, workflowId, ANSWER_WITHIN_MS).catch(noAnswer) : null;
    const now = (await readDeployment(store, begun.run, begun.id))!;
    teller.tellStages(now);
    if (stateOfDeployment(now) === 'deployed') return;
    teller.tellStatus(now);
    if (seen !== null) teller.tellWaiting(now, seen);
    await sleep(lookMs, undefined, { signal });
  }
}

/** Prints what has changed since the last look, and throws once nothing more can change. */
class Teller {
  readonly #line: (line: string) => void;
  readonly #since: string;
  #told: number;
  #message: string | null = null;
  #waits: string | null = null;

  constructor(line: (line: string) => void, begun: RecordedDeployment) {
    this.#line = line;
    this.#since = begun.status?.at ?? '';
    this.#told = begun.finished.length;
  }

  tellStages({ finished }: RecordedDeployment): void {
    for (const { stage } of finished.slice(this.#told)) this.#line(`${stage} done`);
    this.#told = finished.length;
  }

  tellStatus(now: RecordedDeployment): void {
    // The status of an earlier try stays until a worker begins.
    if (now.status === null || now.status.at <= this.#since) return;
    const { stage, message } = now.status;
    requireGoingOn(now, now.status);
    if (message !== null && message !== this.#message) this.#line(`${stage}: ${message}`);
    this.#message = message;
  }

  tellWaiting(now: RecordedDeployment, seen: SeenWorkflow): void {
    requireRunning(now, seen);
    // The deployment's own messages tell of failures.
    const reason = worstWait(seen.pending.filter(({ lastFailure }) => lastFailure === null))?.reason ?? null;
    if (reason !== null && reason !== this.#waits) this.#line(`waiting for ${reason}`);
    this.#waits = reason;
  }
}

const ENDED: readonly string[] = ['COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT'];

function requireRunning({ policy, target }: RecordedDeployment, { status }: SeenWorkflow): void {
  if (!ENDED.includes(status)) return;
  throw new WorkFailed(
    `${policy} was not deployed to ${target}: its workflow has ended (${status.toLowerCase()}); the same command goes on with the next stage`,
  );
}

function requireGoingOn(deployment: RecordedDeployment, { stage, message }: DeploymentStatus): void {
  const { policy, target } = deployment;
  if (stateOfDeployment(deployment) === 'failed')
    throw new WorkFailed(`${policy} was not deployed to ${target} (stage ${stage}): ${message}`);
}
