/** The TypeScript worker as a process of the local stack: its options are one JSON argument, its life hangs on stdin. */
import { writeSync } from 'node:fs';
import { TOLD_FD } from '../process/readiness.ts';
import { createOutputLogger } from './logs.ts';
import type { WorkerProcessOptions } from './worker-settings.ts';
import { runWorker } from './worker.ts';

const options = JSON.parse(process.argv[2] ?? '') as WorkerProcessOptions;
const ended = new AbortController();
const logger = createOutputLogger('worker');
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => ended.abort());
if (options.leash) process.stdin.resume().on('close', () => ended.abort());

const fail = (error: unknown): void => {
  logger.fatal(
    { err: error instanceof Error ? { type: error.name, message: error.message, stack: error.stack } : String(error) },
    'worker failed',
  );
  process.exit(1);
};
process.on('uncaughtException', fail);

try {
  const onReady = (): void => void writeSync(TOLD_FD, 'ready\n');
  await runWorker({ ...options, signal: ended.signal, logger, ...(options.leash && { onReady }) });
  process.exit(0);
} catch (error) {
  fail(error);
}
