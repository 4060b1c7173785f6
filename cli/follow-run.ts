/** A run as its store shows it, again and again: no server is asked. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunState, StepSummary } from '../core/contract.ts';
import { readState, readSteps } from '../store/run-reader.ts';
import type { Store } from '../store/store.ts';

export interface Progress {
  readonly state: RunState | null;
  readonly steps: readonly StepSummary[];
}

const POLL_MS = 250;

/** Yields at each look until the signal, changed or not (a wait that lasts is news too); steps are read anew only when there are more of them. */
export async function* followRun(store: Store, run: string, signal: AbortSignal): AsyncGenerator<Progress> {
  let progress = await readProgress(store, run);
  for (;;) {
    yield progress;
    if (signal.aborted) return;
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    const state = await readState(store, run);
    const isSame = state?.step === progress.state?.step && state?.branch === progress.state?.branch;
    const steps = isSame ? progress.steps : await readSteps(store, run);
    progress = { state, steps };
  }
}

export async function readProgress(store: Store, run: string): Promise<Progress> {
  const [state, steps] = await Promise.all([readState(store, run), readSteps(store, run)]);
  return { state, steps };
}

/** True while the run's workflow is under way, resting or not. */
export function isOpen(state: RunState['state'] | 'starting'): boolean {
  return ['starting', 'running', 'pausing', 'paused', 'stopping'].includes(state);
}

export function isFinal(state: RunState | null): boolean {
  return state !== null && !isOpen(state.state);
}
