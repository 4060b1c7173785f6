/** Ids of groups and attempts as the API writes them, `0.3.2.5` or `eval.0.3.5`, and their neighbours. */

export interface GroupAddress {
  readonly isEval: boolean;
  readonly branch: number;
  readonly step: number;
  /** Null in an evaluation, which is one group. */
  readonly group: number | null;
}

const GROUP = /^(\d+)\.(\d+)\.(\d+)$/;
const EVAL = /^eval\.(\d+)\.(\d+)$/;

/** Null for an id of another kind, such as that of a replay. */
export function parseGroupAddress(id: string): GroupAddress | null {
  const evaluation = EVAL.exec(id);
  if (evaluation !== null)
    return { isEval: true, branch: Number(evaluation[1]), step: Number(evaluation[2]), group: null };
  const group = GROUP.exec(id);
  return group === null
    ? null
    : { isEval: false, branch: Number(group[1]), step: Number(group[2]), group: Number(group[3]) };
}

export function formatGroupAddress({ isEval, branch, step, group }: GroupAddress): string {
  return isEval ? `eval.${branch}.${step}` : [branch, step, group].join('.');
}

/** Group of an attempt, and the attempt's number in it. */
export function splitAttemptId(id: string): { readonly groupId: string; readonly attempt: number } | null {
  const cut = id.lastIndexOf('.');
  const group = id.slice(0, cut);
  return parseGroupAddress(group) === null ? null : { groupId: group, attempt: Number(id.slice(cut + 1)) };
}
