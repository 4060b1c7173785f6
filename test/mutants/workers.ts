/** Broken lines of workers: how processes are kept, ended and told apart, and who is woken. */
import { breaking, type Mutant } from './mutant.ts';

export const WORKERS: readonly Mutant[] = [
  ...breaking('workers/process/supervisor.ts', 'test/workers/process/supervisor.test.ts', [
    ['a child that dies at once is restarted without a pause', 'livedMs > SETTLED_MS ? 1 : deathsInARow + 1', '1'],
    ['a child that was stopped is started again', '      if (stopping) return;\n', ''],
  ]),
  ...breaking('workers/process/child-process.ts', 'test/workers/process/supervisor.test.ts', [
    [
      'a child that ignores SIGTERM is waited for',
      "setTimeout(() => child.kill('SIGKILL'), stopMs)",
      'setTimeout(() => undefined, stopMs)',
    ],
  ]),
  ...breaking('store/bytes/file-lock.ts', 'test/workers/process/supervisor.test.ts', [
    ['a lock keeps nobody out', 'if (tryLock(fd)) return', 'if (fd > 0) return'],
  ]),
  ...breaking('workers/process/command.ts', 'test/workers/process/supervisor.test.ts', [
    ['a program outlives the process that started it', 'return canTie() ?', 'return !canTie() ?'],
  ]),
  ...breaking('workers/process/processes.ts', 'test/workers/process/processes.test.ts', [
    [
      'a stranger that has the number of a process is ended',
      'return processStartTime(mark.pid) === mark.startTime;',
      'return processStartTime(mark.pid) !== null;',
    ],
  ]),
  ...breaking('workers/local-stack/wait.ts', 'test/workers/local-stack/wait.test.ts', [
    ['deaths before anybody waited for a child count', 'before ??= status.deaths;', 'before ??= 0;'],
  ]),
  ...breaking('workers/rewards/wake-run.ts', 'test/workers/rewards/wake-run.test.ts', [
    [
      'a run is woken before any of its groups is complete',
      'if (!awaited.some(({ missing }) => missing.length === 0)) return false;',
      '',
    ],
    [
      'a server that refuses to wake a run is taken for one that has no such run',
      'if (error instanceof WorkflowNotFoundError) return false;',
      'if (error instanceof Error) return false;',
    ],
  ]),
  ...breaking('workers/connection/connection.ts', 'test/workers/connection/connection.test.ts', [
    [
      'a server that refuses is asked again and again',
      'if (!isPassing(error) || patience.signal?.aborted) throw error;',
      'if (patience.signal?.aborted) throw error;',
    ],
  ]),
  ...breaking('workers/worker/workflow-bundle.ts', 'test/workflows/train-step.test.ts', [
    ['a replay that takes longer than five seconds ends the worker', 'isolateExecutionTimeout', 'executionTimeout'],
  ]),
];
