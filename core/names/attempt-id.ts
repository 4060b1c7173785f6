/** An attempt's name in its run: `BRANCH.STEP.GROUP.ATTEMPT`, such as `0.3.2.5`. Steps count from 1, the rest from 0. */
export interface AttemptPlace {
  branch: number;
  step: number;
  group: number;
  attempt: number;
}

const COUNT = '(0|[1-9][0-9]{0,8})';
const GROUP_ID = new RegExp(`^(eval\\.)?${COUNT}\\.${COUNT}(?:\\.${COUNT})?$`);
const ATTEMPT_ID = new RegExp(`^(.+)\\.${COUNT}$`);

/** The form in messages that refuse another one. */
export const ATTEMPT_ID_RULE = 'BRANCH.STEP.GROUP.ATTEMPT, such as 0.3.2.5';

/** Attempts that were played together. */
export interface GroupId {
  readonly branch: number;
  readonly step: number;
  /** Null: an evaluation, which is one group. */
  readonly group: number | null;
}

/** `0.3.2`; an evaluation is `eval.0.3`. */
export function formatGroupId({ branch, step, group }: GroupId): string {
  return group === null ? ['eval', branch, step].join('.') : [branch, step, group].join('.');
}

/** Null for a text that names no group. */
export function parseGroupId(text: string): GroupId | null {
  const [, evaluation, ...numbers] = GROUP_ID.exec(text) ?? [];
  if (numbers.length === 0) return null;
  const [branch, step, group] = numbers.map(Number) as [number, number, number];
  if ((evaluation === undefined) === (numbers[2] === undefined)) return null;
  return { branch, step, group: evaluation === undefined ? group : null };
}

/** An attempt of a group or of an evaluation. */
export interface AttemptId extends GroupId {
  readonly attempt: number;
}

/** `0.3.2.5`; of an evaluation `eval.0.3.5`. */
export function formatAttemptId(place: AttemptId): string {
  return `${formatGroupId(place)}.${place.attempt}`;
}

/** Null for a text that names no attempt. */
export function parseAttemptId(text: string): AttemptId | null {
  const [, group = '', attempt] = ATTEMPT_ID.exec(text) ?? [];
  const place = parseGroupId(group);
  return place && { ...place, attempt: Number(attempt) };
}

/** The same for an attempt of a training step alone. */
export function parseTrainedAttemptId(text: string): AttemptPlace | null {
  const id = parseAttemptId(text);
  return id === null || id.group === null || id.step === 0 ? null : { ...id, group: id.group };
}
