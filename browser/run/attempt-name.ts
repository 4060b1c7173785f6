/** Ids of attempts in words. */

/** `0.3.2.5`: `step 3, group 2, attempt 5`; the branch is left out, because the id says it. */
export function formatAttemptName(id: string): string {
  const parts = id.split('.');
  if (parts[0] === 'eval') return `evaluation after step ${parts[2]}, attempt ${parts[3]}`;
  if (parts[0] === 'replay') return `replay ${parts.slice(1).join('.')}`;
  return `step ${parts[1]}, group ${parts[2]}, attempt ${parts[3]}`;
}
