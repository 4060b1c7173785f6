/** Ids of attempts as the API writes them: `0.3.2.5`, `eval.0.3.5`. */
import { parseGroupId } from '../../core/names/attempt-id.ts';

/** Group of an attempt, and the attempt's number in it; null for a replay, which is in no group. */
export function splitAttemptId(id: string): { readonly groupId: string; readonly attempt: number } | null {
  const cut = id.lastIndexOf('.');
  const groupId = id.slice(0, cut);
  return parseGroupId(groupId) === null ? null : { groupId, attempt: Number(id.slice(cut + 1)) };
}

/** `0.3.2.5`: `step 3, group 2, attempt 5`; the branch is left out, because the id says it. */
export function formatAttemptName(id: string): string {
  const parts = id.split('.');
  if (parts[0] === 'eval') return `evaluation after step ${parts[2]}, attempt ${parts[3]}`;
  if (parts[0] === 'replay') return `replay ${parts.slice(1).join('.')}`;
  return `step ${parts[1]}, group ${parts[2]}, attempt ${parts[3]}`;
}
