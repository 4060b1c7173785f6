/** An attempt's name in its run: `BRANCH.STEP.GROUP.ATTEMPT`, such as `0.3.2.5`. Steps count from 1, the rest from 0. */
export interface AttemptPlace {
  branch: number;
  step: number;
  group: number;
  attempt: number;
}

const COUNT = '(0|[1-9][0-9]{0,8})';
const STEP = '([1-9][0-9]{0,8})';
const ATTEMPT_ID = new RegExp(`^${COUNT}\\.${STEP}\\.${COUNT}\\.${COUNT}$`);

/** The form in messages that refuse another one. */
export const ATTEMPT_ID_RULE = 'BRANCH.STEP.GROUP.ATTEMPT, such as 0.3.2.5';

export function formatAttemptId({ branch, step, group, attempt }: AttemptPlace): string {
  return [branch, step, group, attempt].join('.');
}

/** Null for a text that names no attempt. */
export function parseAttemptId(text: string): AttemptPlace | null {
  const numbers = ATTEMPT_ID.exec(text)?.slice(1).map(Number);
  if (numbers === undefined) return null;
  const [branch, step, group, attempt] = numbers as [number, number, number, number];
  return { branch, step, group, attempt };
}

const EVAL_ATTEMPT_ID = new RegExp(`^eval\\.${COUNT}\\.${COUNT}\\.${COUNT}$`);

/** `eval.BRANCH.STEP.ATTEMPT`, an attempt of an evaluation; null for another text. */
export function parseEvalAttemptId(text: string): Omit<AttemptPlace, 'group'> | null {
  const numbers = EVAL_ATTEMPT_ID.exec(text)?.slice(1).map(Number);
  if (numbers === undefined) return null;
  const [branch, step, attempt] = numbers as [number, number, number];
  return { branch, step, attempt };
}
