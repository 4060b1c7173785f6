/**
 * The order of commands where a run does two things at once. A replay may meet an event in the task of a later one, so
 * how many promises lie between an event and its command must not decide which of two commands is first. Whoever has one
 * to issue waits until no promise is left to settle; then handlers of messages come first, training second, playing last.
 */
import { condition } from '@temporalio/workflow';

export type Lane = 'train' | 'play';

interface Waiting {
  lane: Lane;
  isReady: () => boolean;
}

export class LaneOrder {
  readonly #areHandlersIdle: () => boolean;
  #waiting: Waiting[] = [];

  constructor(areHandlersIdle: () => boolean) {
    this.#areHandlersIdle = areHandlersIdle;
  }

  /** Calls what issues commands, in its turn and when it is ready. */
  async take<T>(lane: Lane, issue: () => Promise<T>, isReady: () => boolean = () => true): Promise<T> {
    const waiting = { lane, isReady };
    this.#waiting.push(waiting);
    // A condition is looked at when it is made, and from then on only where no promise is left to settle.
    let hasSettled = false;
    try {
      await condition(() => {
        const isTurn = hasSettled && this.#isNext(waiting);
        hasSettled = true;
        return isTurn;
      });
    } finally {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
    }
    return issue();
  }

  #isNext({ lane, isReady }: Waiting): boolean {
    if (!isReady() || !this.#areHandlersIdle()) return false;
    return lane === 'train' || !this.#waiting.some((other) => other.lane === 'train' && other.isReady());
  }
}
