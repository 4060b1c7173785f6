/** One local stack for the whole project `crash`: each start of one costs about 20 s of processor time. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { openLocalStack } from '../../workers/local-stack/client.ts';
import { nodeFlags } from '../../workers/process/module-path.ts';
import { AGENT, Project } from './project.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the project whose stack runs. */
    project: string;
    /** Its store has a disk of its own. */
    hasOwnDisk: boolean;
  }
}

const DISK = 'size=256m';
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export async function setup(vitest: TestProject): Promise<() => Promise<void>> {
  const project = new Project({ standby: true });
  const store = project.path('store');
  mkdirSync(store);
  mkdirSync(project.points);
  // Only root mounts; where this user may not, the store's own seam has to do (test/activities/full-disk.test.ts).
  const hasOwnDisk = spawnSync('mount', ['-t', 'tmpfs', '-o', DISK, 'tmpfs', store]).status === 0;
  const env = {
    TEMPER_CRASH_FOLDER: project.points,
    PYTHONPATH: here('short-of-memory'),
    TEMPER_TEST_SHORT_OF_MEMORY: project.shortOfMemory,
    // Nobody answers there: a model of the hub is in the cache before a GPU worker loads it.
    HF_HOME: project.hubCache,
    HF_ENDPOINT: 'http://127.0.0.1:9',
  };
  const before = { ...process.env };
  // Inherited by all that the stack starts, and by nothing else.
  Object.assign(process.env, env);
  const stack = await openLocalStack({
    project: project.folder,
    agentFile: AGENT,
    models: {},
    onEvent: () => undefined,
    commands: { worker: [process.execPath, ...nodeFlags(), here('points/worker.ts')] },
  });
  for (const name of Object.keys(env)) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
  vitest.provide('project', project.folder);
  vitest.provide('hasOwnDisk', hasOwnDisk);
  return async () => {
    await stack.close();
    if (hasOwnDisk) spawnSync('umount', [store]);
    await project.close();
  };
}
