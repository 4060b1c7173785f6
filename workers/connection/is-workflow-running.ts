import { WorkflowNotFoundError, type Client } from '@temporalio/client';

const ANSWER_WITHIN_MS = 10_000;

/** False for one that has ended, and for one that the server does not know any more. Throws if the server does not answer. */
export async function isWorkflowRunning(client: Client, workflowId: string): Promise<boolean> {
  try {
    const handle = client.workflow.getHandle(workflowId);
    const { status } = await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => handle.describe());
    return status.name === 'RUNNING' || status.name === 'CONTINUED_AS_NEW';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
