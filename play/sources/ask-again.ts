/** Reading from other systems, for a command or for what prepares a run: what may pass is asked again, for minutes at most. */
import { setTimeout as sleep } from 'node:timers/promises';

import { TemperError } from '../../core/contract/failures.ts';
import { formatDuration } from '../../core/reports/format.ts';

/** How waits are borne. */
export interface Patience {
  /** Ends a wait. */
  readonly signal?: AbortSignal;
  /** Told of each wait that a person notices. */
  readonly onWait?: (line: string, pauseMs: number) => void;
}

const TRIES = 6;
const FIRST_PAUSE_MS = 500;
/** All waits together. Limits of the Hugging Face hub count requests of five minutes. */
const LONGEST_WAIT_MS = 360_000;
const NOTICED_MS = 1000;

export async function askAgain<T>(ask: () => Promise<T>, { signal, onWait }: Patience): Promise<T> {
  let leftMs = LONGEST_WAIT_MS;
  for (let tried = 1; ; tried++) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TemperError) || !error.retryable || tried === TRIES) throw error;
      const pauseMs = Math.max(0, error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tried - 1));
      leftMs -= pauseMs;
      if (leftMs < 0) throw error;
      // Its remedy is for the end.
      const reason = error.message.split('; ')[0]!;
      if (pauseMs >= NOTICED_MS) onWait?.(`${reason}; asked again in ${formatDuration(pauseMs / 1000)}`, pauseMs);
      await sleep(pauseMs, undefined, signal && { signal });
    }
  }
}
