/** What a person sees of a run: the live view on a terminal, plain lines elsewhere. */
import { createLogUpdate } from 'log-update';
import pc from 'picocolors';
import type { StackEvent } from '../../workers/local-stack/events.ts';
import type { Progress } from '../follow-run.ts';
import type { Output } from '../output.ts';
import { joinRun, linesSince } from './lines.ts';
import { renderLive } from './live.ts';
import { describeStackEvent, isPassing } from './stack-events.ts';

export interface Viewer {
  /** Something that the local stack said. */
  stack(event: StackEvent): void;
  progress(progress: Progress): void;
  /** What holds the run up, as the server tells it; null: nothing. */
  waiting(reason: string | null): void;
  note(text: string): void;
  /** Leaves the screen to whoever writes next. */
  close(): void;
}

export interface ViewerOptions {
  readonly run: string;
  /** What was there when this command came: it is not told again. */
  readonly before: Progress;
  /** The last line of the live view. */
  readonly hint: string;
}

export function createViewer(output: Output, options: ViewerOptions): Viewer {
  return output.isTerminal ? createLiveViewer(output, options) : createPlainViewer(output, options);
}

/** A line every few seconds says that an installation moves; one for each package would bury the rest. */
const INSTALL_LINE_EVERY_MS = 5000;

function createPlainViewer(output: Output, { before }: ViewerOptions): Viewer {
  let { line: joined, told } = joinRun(before);
  let [lastWaiting, lastInstallAt] = ['', 0];
  const waiting = (reason: string | null) => {
    if (reason !== null && reason !== lastWaiting) output.line(`waiting for ${reason}`);
    lastWaiting = reason ?? lastWaiting;
  };
  return {
    stack(event) {
      if (event.kind === 'progress' && !event.finished) {
        if (Date.now() - lastInstallAt < INSTALL_LINE_EVERY_MS) return;
        lastInstallAt = Date.now();
      }
      const text = describeStackEvent(event);
      if (text !== null) output.line(text);
    },
    progress(progress) {
      if (joined !== null) output.line(joined);
      joined = null;
      const next = linesSince(told, progress);
      told = next.told;
      for (const line of next.lines) output.line(line);
      if (progress.state !== null) waiting(progress.state.waitingFor);
    },
    waiting,
    note: (text) => output.line(text),
    close: () => undefined,
  };
}

const KEPT_EVENTS = 20;
const REDRAW_MS = 500;

function createLiveViewer(output: Output, { run, before, hint }: ViewerOptions): Viewer {
  const screen = createLogUpdate(output.stream);
  let progress = before;
  let [stackLine, serverReason]: [string | null, string | null] = [null, null];
  const events: string[] = [];
  const draw = () => {
    const { columns, rows } = output;
    const waitingFor = stackLine ?? serverReason ?? progress.state?.waitingFor ?? null;
    screen(renderLive({ run, ...progress, waitingFor, events, hint }, { columns, rows, colors: pc }));
  };
  const timer = setInterval(draw, REDRAW_MS);
  return {
    stack(event) {
      const text = describeStackEvent(event);
      stackLine = isPassing(event) ? text : null;
      if (text !== null && !isPassing(event)) events.push(`${new Date().toTimeString().slice(0, 8)} ${text}`);
      events.splice(0, events.length - KEPT_EVENTS);
      draw();
    },
    progress(next) {
      progress = next;
      draw();
    },
    waiting(reason) {
      serverReason = reason;
    },
    note: (text) => screen.persist(text),
    close() {
      clearInterval(timer);
      draw();
      screen.done();
    },
  };
}
