/** The multiplication table from 2×2 to 12×12, split into what is trained on and what is only asked in the exam. */
export interface Problem {
  readonly id: string;
  readonly left: number;
  readonly right: number;
}

const OPERANDS = Array.from({ length: 11 }, (_, index) => index + 2);

const ALL: Problem[] = OPERANDS.flatMap((left) => OPERANDS.map((right) => ({ id: `${left}x${right}`, left, right })));

/** Every fourth problem of the table, spread evenly over rows and columns. */
export const heldOutProblems = ALL.filter(({ left, right }) => (left + 2 * right) % 4 === 0);
export const trainingProblems = ALL.filter((problem) => !heldOutProblems.includes(problem));

export function question({ left, right }: Problem): string {
  return `${left}*${right}=`;
}

/** Exact or nothing: no reward for an answer that merely looks like a number. */
export function grade(answer: string | null, { left, right }: Problem): 0 | 1 {
  return answer === String(left * right) ? 1 : 0;
}
