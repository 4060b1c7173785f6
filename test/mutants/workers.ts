/** Broken lines of workers: how processes are kept, ended and told apart, and who is woken. */
import type { Mutant } from './mutant.ts';

const SUPERVISOR_TEST = 'test/workers/process/supervisor.test.ts';

export const WORKERS: readonly Mutant[] = [
  {
    name: 'a child that dies at once is restarted without a pause',
    file: 'workers/process/supervisor.ts',
    find: 'livedMs > SETTLED_MS ? 1 : deathsInARow + 1',
    replace: '1',
    test: SUPERVISOR_TEST,
  },
  {
    name: 'a child that was stopped is started again',
    file: 'workers/process/supervisor.ts',
    find: '      if (stopping) return;\n',
    replace: '',
    test: SUPERVISOR_TEST,
  },
  {
    name: 'a child that ignores SIGTERM is waited for',
    file: 'workers/process/child-process.ts',
    find: "setTimeout(() => child.kill('SIGKILL'), stopMs)",
    replace: 'setTimeout(() => undefined, stopMs)',
    test: SUPERVISOR_TEST,
  },
  {
    name: 'a lock keeps nobody out',
    file: 'workers/project/file-lock.ts',
    find: 'if (tryLock(fd)) return',
    replace: 'if (fd > 0) return',
    test: SUPERVISOR_TEST,
  },
  {
    name: 'a program outlives the process that started it',
    file: 'workers/process/leashed.ts',
    find: 'return canTie() ?',
    replace: 'return !canTie() ?',
    test: SUPERVISOR_TEST,
  },
  {
    name: 'a stranger that has the number of a process is ended',
    file: 'workers/process/processes.ts',
    find: 'return processStartTime(mark.pid) === mark.startTime;',
    replace: 'return processStartTime(mark.pid) !== null;',
    test: 'test/workers/process/processes.test.ts',
  },
  {
    name: 'deaths before anybody waited for a child count',
    file: 'workers/local-stack/wait.ts',
    find: 'before ??= status.deaths;',
    replace: 'before ??= 0;',
    test: 'test/workers/local-stack/wait.test.ts',
  },
  {
    name: 'a run is woken before any of its groups is complete',
    file: 'workers/rewards/wake-run.ts',
    find: 'if (!awaited.some(({ missing }) => missing.length === 0)) return false;',
    replace: '',
    test: 'test/workers/rewards/wake-run.test.ts',
  },
  {
    name: 'a server that refuses to wake a run is taken for one that has no such run',
    file: 'workers/rewards/wake-run.ts',
    find: 'if (error instanceof WorkflowNotFoundError) return false;',
    replace: 'if (error instanceof Error) return false;',
    test: 'test/workers/rewards/wake-run.test.ts',
  },
  {
    name: 'a server that refuses is asked again and again',
    file: 'workers/connection/connection.ts',
    find: 'if (!isPassing(error) || patience.signal?.aborted) throw error;',
    replace: 'if (patience.signal?.aborted) throw error;',
    test: 'test/workers/connection/connection.test.ts',
  },
];
