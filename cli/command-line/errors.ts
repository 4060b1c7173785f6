/** Errors as users see them, and the exit codes. */
import { TemperError, WorkFailed, type FailureType } from '../../core/contract/failures.ts';

export const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** Failures that the user can fix: another flag, disk space, a started server, an upgrade. */
const USERS: ReadonlySet<FailureType> = new Set([
  'BadConfig',
  'StoreUnavailable',
  'SourceUnavailable',
  'StepConflict',
  'LaterVersion',
]);

/** `rule`: what is said of an error that is not for users. */
export function describeError(
  error: unknown,
  rule = 'this is a bug in Temper, not in your input',
): { text: string; exitCode: number } {
  if (error instanceof WorkFailed) return { text: `temper: ${oneLine(error.message)}`, exitCode: EXIT.failed };
  if (error instanceof TemperError) {
    return { text: `temper: ${oneLine(error.message)}`, exitCode: USERS.has(error.type) ? EXIT.usage : EXIT.failed };
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return {
    text: `temper: ${rule}\n${stack}${describeCause(error)}`,
    exitCode: EXIT.failed,
  };
}

function describeCause(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? `\ncaused by ${cause.stack ?? cause.message}` : '';
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, (blanks) => (blanks.includes('\n') ? ' ' : blanks)).trim();
}
