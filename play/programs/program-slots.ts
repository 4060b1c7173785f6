/** How many attempts a program plays at once in this process, over all groups that are played at the same time. */
import { availableParallelism } from 'node:os';

import type { Program } from './program.ts';

class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a place, in order; at most until `over`. What is resolved to gives the place back. */
  async take(over: AbortSignal): Promise<() => void> {
    if (over.aborted) return () => undefined;
    if (this.#free > 0) this.#free -= 1;
    else if (!(await this.#wait(over))) return () => undefined;
    return () => this.#giveBack();
  }

  #wait(over: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const give = (): void => {
        over.removeEventListener('abort', leave);
        resolve(true);
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(give), 1);
        resolve(false);
      };
      this.#waiting.push(give);
      over.addEventListener('abort', leave, { once: true });
    });
  }

  #giveBack(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

const slots = new WeakMap<Program, Slots>();

export function slotsOf(program: Program): Slots {
  const found = slots.get(program);
  if (found !== undefined) return found;
  const made = new Slots(program.concurrency ?? availableParallelism());
  slots.set(program, made);
  return made;
}
