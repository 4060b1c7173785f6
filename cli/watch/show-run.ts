/** A run in front of a viewer, as long as somebody looks. */
import type { RunState } from '../../core/contract.ts';
import type { Store } from '../../store/store.ts';
import { findFirstFailure } from './first-failure.ts';
import { followRun, unlessAway, type RunProgress } from './follow-run.ts';
import type { Viewer } from './viewer.ts';

/** Shows a run to a viewer until the signal, or until `isOver` says that nothing will follow. */
export async function showRun(
  store: Store,
  run: string,
  viewer: Viewer,
  { signal, isOver }: { signal: AbortSignal; isOver: (state: RunState | null) => boolean },
): Promise<void> {
  let hasToldFailure = false;
  let hasToldAway = false;
  for await (const look of followRun(store, run, signal)) {
    if ('away' in look) {
      if (!hasToldAway) viewer.note(`${look.away}; retrying until the store answers`);
      hasToldAway = true;
      continue;
    }
    hasToldAway = false;
    const progress = look.seen;
    viewer.progress(progress);
    const failure: string | null = hasToldFailure ? null : await firstFailure(store, progress);
    if (failure !== null) viewer.note(failure);
    hasToldFailure ||= failure !== null;
    if (isOver(progress.state)) return;
  }
}

async function firstFailure(store: Store, progress: RunProgress): Promise<string | null> {
  const look = await unlessAway(findFirstFailure(store, progress));
  return 'seen' in look ? look.seen : null;
}
