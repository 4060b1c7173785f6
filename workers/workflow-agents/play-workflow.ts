/** Plays one attempt by a workflow of the user's. */
import { WorkflowNotFoundError } from '@temporalio/common';

import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { JudgedResult, RolloutContext, Scenario } from '../../play/agent.ts';
import { attemptHooks } from '../../play/attempt-hooks.ts';
import type { WorkflowAttempt } from '../../play/model-activities/workflow-attempt.ts';
import { AttemptWorkflow, nameWorkflow, type NamedWorkflow } from './attempt-workflow.ts';
import { readHistory } from './history.ts';
import { takeActivities } from './model-queue.ts';
import type { FinishedWorkflow, RunningWorkflow, WorkflowAgentOptions } from './options.ts';
import { answered, connectServer, forgetServer, type ServerOptions } from './temporal-server.ts';

export async function playWorkflow<S extends Scenario, R>(
  options: WorkflowAgentOptions<S, R>,
  context: RolloutContext<S>,
): Promise<JudgedResult> {
  const hooks = attemptHooks(context);
  if (hooks === null)
    throw badConfig('a workflow agent must be given the context of a rollout; pass on what rollout got');
  const attempt = await hooks.openWorkflow();
  try {
    const workflow = await openWorkflow(options, context, attempt);
    await workflow.begin();
    const result = await finish(workflow, options, context);
    const { reward } = options;
    return typeof reward === 'function' ? await reward(result as R, finishedWorkflow(workflow, context)) : undefined;
  } catch (error) {
    // An outage, or a mistake in the options: never data.
    if (error instanceof TemperError) attempt.abort(error);
    throw error;
  }
}

async function openWorkflow<S extends Scenario, R>(
  options: WorkflowAgentOptions<S, R>,
  { scenario, model, signal, ...context }: RolloutContext<S>,
  attempt: WorkflowAttempt,
): Promise<AttemptWorkflow<S>> {
  const named = nameWorkflow(attempt);
  const { server, leave } = await openQueue(options, attempt, { named, signal });
  const given = { options: options as WorkflowAgentOptions<S>, scenario, model, attempt, server, named, signal };
  const workflow = new AttemptWorkflow(given);
  attemptHooks(context)?.onEnd(async () => {
    try {
      await workflow.end();
    } finally {
      await leave();
    }
  });
  return workflow;
}

async function openQueue(
  options: ServerOptions,
  attempt: WorkflowAttempt,
  { named, signal }: { named: NamedWorkflow; signal: AbortSignal },
) {
  const onSilence = (reason: string | null): void => attempt.waitFor(reason, Date.now());
  const open = async () => {
    const server = await connectServer(options, onSilence, signal);
    try {
      return { server, leave: await takeActivities(server, named.queue, named.workflowId, attempt) };
    } catch (error) {
      forgetServer(server);
      throw error;
    }
  };
  return answered(open, { name: options.address ?? 'of the run', onSilence, signal });
}

async function finish<S extends Scenario, R>(
  workflow: AttemptWorkflow<S>,
  { interact }: WorkflowAgentOptions<S, R>,
  context: RolloutContext<S>,
): Promise<unknown> {
  const result = workflow.result();
  if (interact === undefined) return result;
  const interacting = (async () => {
    await interact({ ...partsOf(context), workflow: running(workflow, context) });
    return result;
  })();
  // One that has ended takes no signals: its result says what became of it.
  const told = interacting.catch((error: unknown) => {
    if (error instanceof WorkflowNotFoundError) return result;
    throw error;
  });
  return Promise.race([result, told]);
}

function partsOf<S extends Scenario>({ scenario, hosted, once, random, signal, metric, log }: RolloutContext<S>) {
  return { scenario, hosted, once, random, signal, metric, log };
}

/** Numbered: the attempt is deterministic, and what was sent is not sent again. */
function running<S extends Scenario>(workflow: AttemptWorkflow<S>, { once }: RolloutContext<S>): RunningWorkflow {
  const { handle } = workflow;
  let count = 0;
  const send = <T>(fn: (id: string) => Promise<T>): Promise<T> => {
    const id = `${workflow.nonce} message ${count++}`;
    return once(`workflow ${id}`, () => workflow.ask(() => fn(id)));
  };
  return {
    workflowId: handle.workflowId,
    signal: (name, ...args) => send(() => handle.signal(name, ...args)),
    update: (name, ...args) =>
      // The server takes an id once: an update that is asked again is the same.
      send((updateId) =>
        handle.executeUpdate<unknown, [unknown, ...unknown[]]>(name, { args: args as [unknown], updateId }),
      ),
    query: (name, ...args) => workflow.ask(() => handle.query(name, ...args)),
  };
}

function finishedWorkflow<S extends Scenario>(
  workflow: AttemptWorkflow<S>,
  context: RolloutContext<S>,
): FinishedWorkflow<S> {
  const { client, handle, firstRunId } = workflow;
  return {
    ...partsOf(context),
    get history() {
      return workflow.ask(() => readHistory(client, handle.workflowId, firstRunId));
    },
  };
}
