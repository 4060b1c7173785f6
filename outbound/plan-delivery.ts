/** What a target gets next: a pure function of the run's state and of the cursor of what the target has. */
import type { Branch } from '../core/contract/contract.ts';
import { NEW_CURSOR, type Cursor, type RunOutcome } from '../store/records/production/outbound-cursor.ts';
import type { RunSnapshot } from './run-snapshot.ts';
import type { Target } from './target.ts';

export type NextDelivery =
  | { readonly kind: 'begin' }
  | { readonly kind: 'leave branch' }
  | { readonly kind: 'rows'; readonly pending: string[] }
  | { readonly kind: 'end'; readonly outcome: RunOutcome }
  | { readonly kind: 'nothing' };

type Seen = Pick<RunSnapshot, 'branch' | 'steps' | 'evals'>;

/** `outcome`: how the run ended; null while it runs. */
export function planDelivery(
  cursor: Cursor,
  seen: Seen,
  outcome: RunOutcome | null,
  { batch }: Pick<Target, 'batch'>,
): NextDelivery {
  if (!cursor.hasBegun) return { kind: 'begin' };
  if (seen.branch > cursor.branch) return { kind: 'leave branch' };
  const pending = cursor.pending ?? newRows(cursor, seen).slice(0, batch);
  if (cursor.ended !== null && (pending.length > 0 || outcome === null)) return { kind: 'begin' };
  if (pending.length > 0) return { kind: 'rows', pending };
  if (outcome !== null && cursor.ended === null) return { kind: 'end', outcome };
  return { kind: 'nothing' };
}

/** An evaluation follows its step; a late one stays where it was delivered. */
function newRows(cursor: Cursor, { steps, evals }: Seen): string[] {
  const delivered = new Set(cursor.evals);
  const rows = [
    ...steps.filter(({ step }) => step > cursor.step).map(({ step }) => ({ step, row: `s${step}` })),
    ...evals.filter(({ step }) => !delivered.has(step)).map(({ step }) => ({ step, row: `e${step}` })),
  ];
  return rows.toSorted((a, b) => a.step - b.step || (a.row < b.row ? 1 : -1)).map(({ row }) => row);
}

/** After these rows were delivered. */
export function afterRows(cursor: Cursor, rows: readonly string[]): Cursor {
  const stepsOf = (kind: string) => rows.filter((row) => row.startsWith(kind)).map((row) => Number(row.slice(1)));
  return {
    ...cursor,
    step: Math.max(cursor.step, ...stepsOf('s')),
    evals: [...cursor.evals, ...stepsOf('e')],
    rows: cursor.rows + rows.length,
    pending: null,
  };
}

/** On a new branch a target begins anew, or goes on after the last step that the branches share. */
export function onNewBranch(
  cursor: Cursor,
  { branch, lineage }: { branch: number; lineage: readonly Branch[] },
  { onRollback }: Pick<Target, 'onRollback'>,
): Cursor {
  if (onRollback === 'restart') return { ...NEW_CURSOR, branch };
  const fork = Math.min(...lineage.filter((each) => each.branch > cursor.branch).map(({ fromStep }) => fromStep));
  return {
    ...cursor,
    branch,
    step: Math.min(cursor.step, fork),
    evals: cursor.evals.filter((step) => step <= fork),
    pending: null,
    hasBegun: false,
    ended: null,
  };
}

/** The cursor of a target that gets only what comes. */
export function cursorFromNow({ branch, steps, evals }: Seen): Cursor {
  return { ...NEW_CURSOR, branch, step: steps.at(-1)?.step ?? 0, evals: evals.map(({ step }) => step) };
}
