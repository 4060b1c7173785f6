/** Polls a run's store; needs no server. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunState, StepSummary } from '../../core/contract/contract.ts';
import { TemperError } from '../../core/contract/failures.ts';
import { isEnded, readState, readSteps } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';

export interface RunProgress {
  readonly state: RunState | null;
  readonly steps: readonly StepSummary[];
}

/** `away`: the reason why the store could not be read. */
export type Look<T> = { readonly seen: T } | { readonly away: string };

const POLL_MS = 250;

/** Yields each poll, changed or not, because a long wait matters too. Steps are read again only when there are new ones. */
export async function* followRun(store: Store, run: string, signal: AbortSignal): AsyncGenerator<Look<RunProgress>> {
  let progress: RunProgress | null = null;
  for (;;) {
    const look: Look<RunProgress> = await unlessAway(
      progress === null ? readProgress(store, run) : readOn(store, run, progress),
    );
    if ('seen' in look) progress = look.seen;
    yield look;
    if (signal.aborted) return;
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function readOn(store: Store, run: string, progress: RunProgress): Promise<RunProgress> {
  const state = await readState(store, run);
  const isSame = state?.step === progress.state?.step && state?.branch === progress.state?.branch;
  const steps = isSame ? progress.steps : await readSteps(store, run);
  return { state, steps };
}

/** Converts an outage of the store into a value: the run and its watchers continue after it. */
export async function unlessAway<T>(reading: Promise<T>): Promise<Look<T>> {
  try {
    return { seen: await reading };
  } catch (error) {
    if (error instanceof TemperError && error.type === 'StoreUnavailable') return { away: error.message };
    throw error;
  }
}

export async function readProgress(store: Store, run: string): Promise<RunProgress> {
  const [state, steps] = await Promise.all([readState(store, run), readSteps(store, run)]);
  return { state, steps };
}

export function isFinal(state: RunState | null): boolean {
  return state !== null && isEnded(state);
}
