import { fileURLToPath } from 'node:url';

import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

export const WORKFLOWS_PATH = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));

export async function bundleWorkflows(): Promise<string> {
  const { code } = await bundleWorkflowCode({ workflowsPath: WORKFLOWS_PATH, logger: new DefaultLogger('WARN') });
  return code;
}
