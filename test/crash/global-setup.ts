/** One local stack for the whole project `crash`: each start of one costs about 20 s of processor time. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { codeCommand, useCompiledCode } from '../compiled.ts';
import { isNightly } from '../run/tier.ts';
import { Project, ticTacToe } from '../stack.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the project whose stack runs. */
    project: string;
    /** Its store has a disk of its own. */
    hasOwnDisk: boolean;
  }
}

const DISK = 'size=256m';

export async function setup(vitest: TestProject): Promise<() => Promise<void>> {
  const compiled = await useCompiledCode();
  const folder = new Project({ config: { localStack: { standby: isNightly() } } }).folder;
  const env = {
    TEMPER_CRASH_FOLDER: join(folder, 'points'),
    PYTHONPATH: fileURLToPath(new URL('short-of-memory', import.meta.url)),
    TEMPER_TEST_SHORT_OF_MEMORY: join(folder, 'short-of-memory'),
    // Nobody answers there: a model of the hub is in the cache before a GPU worker loads it.
    HF_HOME: join(folder, 'huggingface'),
    HF_ENDPOINT: 'http://127.0.0.1:9',
  };
  const project = new Project({ folder, env });
  const store = project.path('store');
  mkdirSync(store);
  mkdirSync(project.points);
  // Only root mounts; where this user may not, the store's own seam has to do (test/activities/full-disk.test.ts).
  const hasOwnDisk = spawnSync('mount', ['-t', 'tmpfs', '-o', DISK, 'tmpfs', store]).status === 0;
  await project.hold({
    agentFile: ticTacToe(),
    commands: { worker: codeCommand('test/crash/points/worker.ts') },
    unmount: hasOwnDisk ? store : null,
    remove: [folder, ...compiled],
  });
  vitest.provide('project', project.folder);
  vitest.provide('hasOwnDisk', hasOwnDisk);
  return () => project.close();
}
