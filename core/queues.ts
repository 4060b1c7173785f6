/** Who listens where. Queue names and workflow ids are addresses on the wire: they change with a migration only. */

/** Workflow tasks of every run. */
export const WORKFLOW_QUEUE = 'temper';

/** `prepare`, `rollout`, `evaluate` and `record`: a worker plays only the agents it was started with, from one store. */
export function rolloutQueue(storeId: string, agent: string): string {
  return `rollout/${storeId}/${agent}`;
}

const WORKFLOW_ID_PREFIX = 'run/';

export function runWorkflowId(run: string): string {
  return `${WORKFLOW_ID_PREFIX}${run}`;
}

/** The run that a workflow id addresses; null for other workflows. */
export function runOfWorkflowId(workflowId: string): string | null {
  return workflowId.startsWith(WORKFLOW_ID_PREFIX) ? workflowId.slice(WORKFLOW_ID_PREFIX.length) : null;
}

/** Of one step of a script's own loop. */
export function trainWorkflowId(project: string, model: string, step: number): string {
  return `train/${project}/${model}/${step}`;
}

const SCHEDULE_ID_PREFIX = 'schedule/';

/** Of a schedule, and of its firings' workflows: there Temporal appends the time that fired. */
export function scheduleId(name: string): string {
  return `${SCHEDULE_ID_PREFIX}${name}`;
}

/** The schedule that an id addresses; null for other people's. */
export function nameOfScheduleId(id: string): string | null {
  return id.startsWith(SCHEDULE_ID_PREFIX) ? id.slice(SCHEDULE_ID_PREFIX.length) : null;
}
