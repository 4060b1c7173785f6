/** The end of a run, however many weeks that takes. */
import { setMaxListeners } from 'node:events';
import { patiently, type TemporalClient } from '../../workers/connection/connection.ts';

/** Temporal's client leaves a listener on its signal with each of its long polls, about three a minute. */
const LISTEN_MS = 3_600_000;

export interface AwaitOptions {
  readonly signal: AbortSignal;
  readonly listenMs?: number;
}

/** What `ask` answers, asked anew each hour, and while nobody answers; fails once the signal is aborted. */
export async function awaitRun<T>(
  connection: Pick<TemporalClient['connection'], 'withAbortSignal'>,
  ask: () => Promise<T>,
  { signal, listenMs = LISTEN_MS }: AwaitOptions,
): Promise<T> {
  for (;;) {
    const turn = AbortSignal.any([signal, AbortSignal.timeout(listenMs)]);
    setMaxListeners(0, turn);
    try {
      return await patiently(() => connection.withAbortSignal(turn, ask), { limitMs: null, signal: turn });
    } catch (error) {
      if (signal.aborted || !turn.aborted) throw error;
    }
  }
}
