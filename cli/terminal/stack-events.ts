/** Events of the local stack as text. */
import type { StackEvent } from '../../workers/events.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { formatDuration } from '../../core/reports/format.ts';
import type { Output } from './output.ts';

/** Progress is printed at intervals: a line for each package or second would bury the rest. */
const LINE_EVERY_MS = { progress: 5000, waiting: 15_000 } as const;
/** Shorter waits are not shown. */
const SHORT_WAIT_SECONDS = 1;

/** Prints events as lines, for pipes and logs. */
export function createEventPrinter(line: (text: string) => void): (event: StackEvent) => void {
  const toldAt = new Map<string, number>();
  return (event) => {
    if (event.kind === 'waiting' && event.seconds < SHORT_WAIT_SECONDS) return;
    if (isOverwritten(event)) {
      const name = event.kind === 'progress' ? event.task : event.for;
      if (performance.now() - (toldAt.get(name) ?? -Infinity) < LINE_EVERY_MS[event.kind]) return;
      toldAt.set(name, performance.now());
    }
    const text = describeStackEvent(event);
    if (text !== null) line(text);
  };
}

interface Started {
  readonly env: Readonly<NodeJS.ProcessEnv>;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** Context of programs and downloads that a command starts; their events are printed to stderr. */
export function programContext({ env, output, signal }: Started) {
  return { env, cache: cacheFolder(env), signal, onEvent: createEventPrinter((line) => output.errorLine(line)) };
}

/** Null for events that users need not see. */
export function describeStackEvent(event: StackEvent): string | null {
  switch (event.kind) {
    case 'progress':
      return describeProgress(event);
    case 'waiting':
      return `starting ${event.for} (${formatDuration(event.seconds)} of at most ${formatDuration(event.limitSeconds)})`;
    case 'child':
      return event.child.deaths > 0 && event.child.state === 'ready' ? `${event.child.name} restarted` : null;
    case 'died': {
      const last = event.lastLines.length === 0 ? '' : `; last output: ${event.lastLines.slice(-3).join(' | ')}`;
      return `${event.name} died (${event.exit}), restarting in ${formatDuration(event.restartInMs / 1000)}${last}`;
    }
    case 'notice':
      return event.message;
    default:
      // A newer stack may send events that this command does not know.
      return null;
  }
}

/** True if the next event overwrites this one. */
export function isOverwritten(event: StackEvent): event is Extract<StackEvent, { kind: 'waiting' | 'progress' }> {
  return event.kind === 'waiting' || (event.kind === 'progress' && !event.finished);
}

function describeProgress(event: Extract<StackEvent, { kind: 'progress' }>): string {
  const { done, total, elapsedSeconds, finished, message } = event;
  if (finished) return `${message} (${formatDuration(elapsedSeconds)})`;
  const count = done === null ? '' : ` ${total === null ? '' : `${megabytes(done)} of `}${megabytes(total ?? done)}`;
  return `${message}${count} … ${formatDuration(elapsedSeconds)}`;
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MB`;
}
