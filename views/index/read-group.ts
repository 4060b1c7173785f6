/** Reads one group, or one evaluation, for the index: its rows and the words of its attempts. */
import type { RunConfig, SettingChange } from '../../core/contract.ts';
import { evalRolloutsKey, evalTimesKey, groupTimesKey, rolloutsKey } from '../../store/layout.ts';
import { readStored, TimesFileSchema } from '../../store/records/file-schemas.ts';
import { readVerdict } from '../../store/records/group-files.ts';
import { readStepVerdict } from '../../store/records/step-verdict.ts';
import { decodeWithoutNumbers, type Rollouts } from '../../store/records/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptRow } from '../api/attempt-views.ts';
import { attemptRows, groupUse } from '../rows/attempt-row.ts';
import { searchText, type SearchText } from './attempt-text.ts';
import type { UnreadGroup } from './find-groups.ts';

export interface AttemptsForIndex {
  readonly rows: readonly AttemptRow[];
  readonly words: readonly SearchText[];
}

export interface RunSettings {
  readonly run: string;
  readonly config: RunConfig;
  readonly changes: readonly SettingChange[];
}

/** Null if it is gone: the run was deleted meanwhile. */
export async function readForIndex(
  store: Store,
  of: RunSettings,
  unread: UnreadGroup,
): Promise<AttemptsForIndex | null> {
  const place = { run: of.run, branch: unread.branch, step: unread.step };
  const { group } = unread;
  if (group === null) {
    const [rollouts, times] = await Promise.all([
      readWords(store, evalRolloutsKey(place)),
      readStored(store, evalTimesKey(place), TimesFileSchema),
    ]);
    if (rollouts === null) return null;
    const files = { place, group, rollouts, judged: null, times, use: 'eval' as const };
    return { rows: attemptRows(files), words: rollouts.attempts.map(searchText) };
  }
  const at = { ...place, group };
  const [rollouts, verdict, times, decided] = await Promise.all([
    readWords(store, rolloutsKey(at)),
    unread.isJudged ? readVerdict(store, at) : null,
    readStored(store, groupTimesKey(at), TimesFileSchema),
    readStepVerdict(store, place),
  ]);
  if (rollouts === null) return null;
  const said = decided?.groups.find((each) => each.group === group && (each.step ?? place.step) === place.step);
  const use = said?.use ?? groupUse(of, at, rollouts, verdict);
  const files = { place, group, rollouts, judged: verdict?.judged ?? null, times, use };
  return { rows: attemptRows(files), words: rollouts.attempts.map(searchText) };
}

async function readWords(store: Store, key: string): Promise<Rollouts | null> {
  const bytes = await store.read(key);
  return bytes && decodeWithoutNumbers(bytes, key);
}
