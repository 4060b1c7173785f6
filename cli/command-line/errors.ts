/** Errors as users see them, and the exit codes. */
import { TemperError, type FailureType } from '../../core/failures.ts';

export const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** Wrong input on the command line. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Failure of the requested work that is not a bug in Temper. */
export class WorkFailed extends Error {
  override readonly name = 'WorkFailed';
}

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
  if (error instanceof UsageError) return { text: `temper: ${oneLine(error.message)}`, exitCode: EXIT.usage };
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

/** Most likely name for a typo; null if none is close. */
export function closestName(name: string, names: readonly string[]): string | null {
  const ranked = names
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .toSorted((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : null;
}

/** Levenshtein distance, computed row by row. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
