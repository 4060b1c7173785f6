/** View of a run: live on a terminal, plain lines elsewhere. */
import { createLogUpdate } from 'log-update';
import pc from 'picocolors';
import type { StackEvent } from '../../workers/events.ts';
import type { RunProgress } from './follow-run.ts';
import type { Output } from '../terminal/output.ts';
import { printable } from '../../core/text/printable.ts';
import type { PendingActivity } from '../../operations/pending/pending-activity.ts';
import { withPending, worstWait, type Wait } from '../../operations/pending/under-way.ts';
import { joinRun, linesSince } from './lines.ts';
import { renderLive } from './live.ts';
import { createEventPrinter, describeStackEvent, isOverwritten } from '../terminal/stack-events.ts';

export interface Viewer {
  /** Event of the local stack. */
  stack(event: StackEvent): void;
  progress(progress: RunProgress): void;
  /** Pending activities from the server, with reasons for waits. */
  pending(activities: readonly PendingActivity[]): void;
  note(text: string): void;
  /** Releases the screen for other output. */
  close(): void;
}

export interface ViewerOptions {
  readonly run: string;
  /** Progress from before this command; it is not shown again. */
  readonly before: RunProgress;
  /** Last line of the live view. */
  readonly hint: string;
}

export function createViewer(output: Output, options: ViewerOptions): Viewer {
  return output.isTerminal ? createLiveViewer(output, options) : createPlainViewer(output, options);
}

/** Shorter waits are not shown. */
const SLOW_MS = 15_000;
/** Shorter waits for a worker are not shown: it may be starting. */
const PENDING_MS = 5_000;

function createPlainViewer(output: Output, { before }: ViewerOptions): Viewer {
  const { line: joined, told: start } = joinRun(before);
  let told = start;
  const stack = createEventPrinter((text) => output.line(text));
  const said = new Set<string>();
  const waiting = (reason: string | null, text = reason) => {
    if (reason !== null && !said.has(reason)) output.line(`waiting for ${text}`);
    if (reason !== null) said.add(reason);
  };
  const slow = createSlowness(SLOW_MS);
  const lasting = createSlowness(PENDING_MS);
  let pending: readonly PendingActivity[] = [];
  if (joined !== null) output.line(joined);
  return {
    stack,
    progress(progress) {
      const next = linesSince(told, progress);
      told = next.told;
      for (const line of next.lines) output.line(line);
      waiting(slow(asItRuns(progress, pending).state?.waitingFor ?? null));
    },
    pending(activities) {
      pending = activities;
      const worst = worstWait(activities);
      waiting(lasting(worst?.reason ?? null), worst?.text);
    },
    note: (text) => output.line(text),
    close: () => undefined,
  };
}

function asItRuns(progress: RunProgress, pending: readonly PendingActivity[]): RunProgress {
  return progress.state === null ? progress : { ...progress, state: withPending(progress.state, pending) };
}

/** Returns a reason once it has lasted long enough. */
function createSlowness(afterMs: number): (reason: string | null) => string | null {
  let [current, since]: [string | null, number] = [null, performance.now()];
  return (reason) => {
    if (reason !== current) [current, since] = [reason, performance.now()];
    return performance.now() - since > afterMs ? reason : null;
  };
}

/** Some process of the stack may start for minutes, while an activity fails. */
function statusOf(stackLine: string | null, worst: Wait | null, waitingFor: string | null): string | null {
  const wait = worst?.text ?? waitingFor;
  return (worst?.hasFailed === true ? null : stackLine) ?? (wait && `waiting for ${wait}`);
}

const KEPT_EVENTS = 20;
const REDRAW_MS = 500;
const SHOWN_WAIT_MS = 2000;

function createLiveViewer(output: Output, { run, before, hint }: ViewerOptions): Viewer {
  const screen = createLogUpdate(output.stream);
  let progress = before;
  let stackLine: string | null = null;
  let pending: readonly PendingActivity[] = [];
  const events: string[] = [];
  const slow = createSlowness(SHOWN_WAIT_MS);
  const lasting = createSlowness(PENDING_MS);
  let drawnHeight = 0;
  const draw = () => {
    const { columns, rows } = output;
    const shown = asItRuns(progress, pending);
    const worst = worstWait(pending);
    const lastingWait = lasting(worst?.reason ?? null) === null ? null : worst;
    const status = statusOf(stackLine, lastingWait, slow(shown.state?.waitingFor ?? null));
    const text = renderLive({ run, ...shown, status, events, hint }, { columns, rows, colors: pc });
    const height = text.split('\n').length;
    // log-update keeps the lines below a change in place, so a frame of another height is drawn from scratch.
    if (height !== drawnHeight) screen.clear();
    drawnHeight = height;
    screen(text);
  };
  const timer = setInterval(draw, REDRAW_MS);
  return {
    stack(event) {
      const text = describeStackEvent(event);
      stackLine = isOverwritten(event) ? text : null;
      if (text !== null && !isOverwritten(event)) events.push(`${new Date().toTimeString().slice(0, 8)} ${text}`);
      events.splice(0, events.length - KEPT_EVENTS);
      draw();
    },
    progress(next) {
      progress = next;
      draw();
    },
    pending(activities) {
      pending = activities;
    },
    note: (text) => screen.persist(printable(text)),
    close() {
      clearInterval(timer);
      draw();
      screen.done();
    },
  };
}
