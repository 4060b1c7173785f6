/**
 * Names of task queues and workflow ids. They are addresses on the wire and change with a migration only. Each holds
 * the store's id: projects that share a namespace have runs and agents of one name.
 */

/** Workflow tasks of every run, as the configuration names the queue. */
export const WORKFLOW_QUEUE = 'temper';

/** A queue of the configuration as workers of one store poll it; gpu-worker/temper_gpu/temporal/polling.py says the same. */
export function storeQueue(storeId: string, name: string): string {
  return `${name}/${storeId}`;
}

/** `prepare`, `rollout`, `evaluate` and `record`: a worker plays only the agents it was started with, from one store. */
export function rolloutQueue(storeId: string, agent: string): string {
  return `rollout/${storeId}/${agent}`;
}

/** Activities that deliver a run to other systems, or deploy it: any worker of the store takes them. */
export function outboundQueue(storeId: string): string {
  return `outbound/${storeId}`;
}

/** Workflow that delivers a run to one target. */
export function trackWorkflowId(storeId: string, run: string, target: string): string {
  return `track/${storeId}/${run}/${target}`;
}

/** Model activities of one group, or of one evaluation, of an agent that is a workflow. */
export function modelQueue(storeId: string, run: string, play: string): string {
  return `temper-model/${storeId}/${run}/${play}`;
}

/** Workflow of the user's that plays one attempt. */
export function attemptWorkflowId(storeId: string, run: string, attemptId: string): string {
  return `attempt/${storeId}/${run}/${attemptId}`;
}

export function runWorkflowId(storeId: string, run: string): string {
  return `run/${storeId}/${run}`;
}

/** The run that a workflow id addresses; null for other workflows. */
export function runOfWorkflowId(workflowId: string): string | null {
  return /^run\/[^/]+\/([^/]+)$/.exec(workflowId)?.[1] ?? null;
}

/** Workflow of one step of a script's own loop. */
export function trainWorkflowId(storeId: string, project: string, model: string, step: number): string {
  return `train/${storeId}/${project}/${model}/${step}`;
}

/** Id of a schedule and of its firings' workflows; Temporal appends the time of the firing to the latter. */
export function scheduleId(storeId: string, name: string): string {
  return `schedule/${storeId}/${name}`;
}

/** Schedule of this store that an id addresses; null for ids of other stores. */
export function nameOfScheduleId(storeId: string, id: string): string | null {
  const prefix = scheduleId(storeId, '');
  return id.startsWith(prefix) ? id.slice(prefix.length) : null;
}

/** Workflow of a deployment, by its id in the store. */
export function deploymentWorkflowId(storeId: string, run: string, id: string): string {
  return `deploy/${storeId}/${run}/${id}`;
}
