/** Logs: one JSON line each, with run, step and attempt if known. */
import type { LogLevel, LogMetadata, Logger as TemporalLogger } from '@temporalio/worker';
import { destination, pino, stdTimeFunctions, type Logger } from 'pino';
import { runOfWorkflowId } from '../../core/names/queues.ts';

export type { Logger } from 'pino';

const OPTIONS = {
  base: undefined,
  timestamp: stdTimeFunctions.isoTime,
  formatters: { level: (label: string) => ({ level: label }) },
} as const;

/** A child of the local stack logs to its output, which the stack files under its name. */
export function createOutputLogger(processName: string): Logger {
  return pino({ ...OPTIONS, base: { process: processName } }, destination({ fd: 1, sync: true }));
}

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

/** Formats the logs of Temporal's runtime, workers, workflows and activities as ours. */
export function temporalLogger(logger: Logger): TemporalLogger {
  const log = (level: LogLevel, message: string, meta: LogMetadata = {}) =>
    logger[LEVELS[level]](logFields(meta), message);
  return {
    log,
    trace: (message, meta) => log('TRACE', message, meta),
    debug: (message, meta) => log('DEBUG', message, meta),
    info: (message, meta) => log('INFO', message, meta),
    warn: (message, meta) => log('WARN', message, meta),
    error: (message, meta) => log('ERROR', message, meta),
  };
}

/** Names in the house's words first; then what Temporal knows, without what JSON cannot hold. */
export function logFields(meta: LogMetadata): Record<string, unknown> {
  const fields = Object.fromEntries(
    Object.entries(meta)
      .filter(([name]) => !name.startsWith('taskToken'))
      .map(([name, value]) => [name, plain(value)]),
  );
  const run = typeof meta.workflowId === 'string' ? runOfWorkflowId(meta.workflowId) : null;
  return run === null || 'run' in fields ? fields : { run, ...fields };
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return { type: value.name, message: value.message, stack: value.stack };
  return value;
}
