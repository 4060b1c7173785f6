/** A run in front of a viewer, as long as somebody looks. */
import type { RunState } from '../core/contract.ts';
import type { Store } from '../store/store.ts';
import { findFirstFailure } from './first-failure.ts';
import { followRun } from './follow-run.ts';
import type { Viewer } from './view/viewer.ts';

/** Shows a run to a viewer until the signal, or until `isOver` says that nothing will follow. */
export async function showRun(
  store: Store,
  run: string,
  viewer: Viewer,
  { signal, isOver }: { signal: AbortSignal; isOver: (state: RunState | null) => boolean },
): Promise<void> {
  let hasToldFailure = false;
  for await (const progress of followRun(store, run, signal)) {
    viewer.progress(progress);
    const failure: string | null = hasToldFailure ? null : await findFirstFailure(store, progress);
    if (failure !== null) viewer.note(failure);
    hasToldFailure ||= failure !== null;
    if (isOver(progress.state)) return;
  }
}
