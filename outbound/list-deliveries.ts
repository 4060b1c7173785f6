/** What the targets of a run have, from the store. */
import { outboundPrefix } from '../store/layout.ts';
import { childNames } from '../store/records/children.ts';
import { readCursor, type RunOutcome } from '../store/records/production/outbound-cursor.ts';
import type { Store } from '../store/store.ts';

export interface TargetProgress {
  readonly target: string;
  readonly branch: number;
  /** The last step that was delivered to it. */
  readonly step: number;
  readonly evaluations: number;
  readonly ended: RunOutcome | null;
  /** Page of the run; null if the target has none. */
  readonly url: string | null;
  /** Why the last try failed: the target refused it, or did not answer. */
  readonly failure: string | null;
}

export async function listDeliveries(store: Store, run: string): Promise<TargetProgress[]> {
  const names = (await childNames(store, outboundPrefix(run))).flatMap((file) =>
    file.endsWith('.json') ? [file.slice(0, -'.json'.length)] : [],
  );
  const cursors = await Promise.all(names.map((name) => readCursor(store, run, name)));
  return cursors.flatMap((cursor, index) => {
    if (cursor === null) return [];
    const { branch, step, evals, ended, memory, failure = null } = cursor;
    const place = { target: names[index]!, branch, step, evaluations: evals.length };
    return [{ ...place, ended, url: memory['url'] ?? null, failure }];
  });
}
