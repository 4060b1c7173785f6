/** One Temporal server and one workflow bundle for the whole project `workflows`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { TestProject } from 'vitest/node';

import { SHARED_SERVER_VARIABLE, startTestServer } from '../temporal-server.ts';
import { bundleWorkflows } from './bundle.ts';

declare module 'vitest' {
  interface ProvidedContext {
    temporalAddress: string;
    workflowBundle: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-workflows-'));
  const codePath = join(folder, 'workflows.js');
  const shared = process.env[SHARED_SERVER_VARIABLE];
  const [server, code] = await Promise.all([shared ? null : startTestServer(), bundleWorkflows()]);
  await writeFile(codePath, code);
  project.provide('temporalAddress', server?.address ?? shared!);
  project.provide('workflowBundle', codePath);
  return async () => {
    await server?.stop();
    await rm(folder, { recursive: true });
  };
}
