/** Ids of attempts as the API writes them, in words. */
import { parseAttemptId } from '../../core/names/attempt-id.ts';

/** `0.3.2.5`: `step 3, group 2, attempt 5`; the branch is left out, because the id says it. */
export function formatAttemptName(id: string): string {
  const place = parseAttemptId(id);
  if (place === null) return id.replace('.', ' ');
  const { step, group, attempt } = place;
  return `${group === null ? `evaluation after step ${step}` : `step ${step}, group ${group}`}, attempt ${attempt}`;
}
