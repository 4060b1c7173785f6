/**
 * A second process of a child whose start takes long: it has everything imported and waits for a line on stdin. When the
 * child dies, it takes its place. One is made ready each time that a child has become of use: one that dies while it
 * waits (of too little memory, say) is not tried again until then.
 */
import { STANDING_BY } from '../../core/wire-constants.ts';
import { collectLines, whenEnded } from './command.ts';
import type { ChildLog } from './child-log.ts';
import { endChild, startChild, type ChildSpec, type StartedChild } from './child-process.ts';

/** The first work of a new child is not to be slowed down. */
const PREPARE_AFTER_MS = 3000;

export class Standby {
  readonly #spec: ChildSpec;
  readonly #log: ChildLog;
  readonly #onChange: () => void;
  #waiting: StartedChild | null = null;
  #isReady = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(spec: ChildSpec, log: ChildLog, onChange: () => void) {
    this.#spec = spec;
    this.#log = log;
    this.#onChange = onChange;
  }

  get pid(): number | undefined {
    return this.#waiting?.child.pid;
  }

  /** Starts one soon, if possible. */
  prepare(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), PREPARE_AFTER_MS);
  }

  /** The waiting one, with its turn given; null if there is none, or it still imports: a new start is faster. */
  take(): StartedChild | null {
    clearTimeout(this.#timer);
    const taken = this.#waiting;
    this.#waiting = null;
    if (this.#isReady) taken?.child.stdin?.write('\n');
    else taken?.child.kill('SIGKILL');
    return this.#isReady ? taken : null;
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting) await endChild(waiting.child, this.#spec.stopMs);
  }

  #start(): void {
    if (this.#spec.standbyCommand === null || this.#waiting !== null) return;
    const started = startChild(this.#spec, this.#spec.standbyCommand, this.#log);
    this.#waiting = started;
    this.#isReady = false;
    collectLines(started.child, (line) => {
      if (line.includes(STANDING_BY) && this.#waiting === started) this.#isReady = true;
    });
    whenEnded(started.child, () => {
      if (this.#waiting === started) this.#waiting = null;
    });
    this.#onChange();
  }
}
