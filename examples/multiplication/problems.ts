/** The multiplication table from 2×2 to 12×12, split into what is trained on and what is only asked in the exam. */
export interface Problem {
  readonly id: string;
  readonly left: number;
  readonly right: number;
}

const OPERANDS = Array.from({ length: 11 }, (_, index) => index + 2);
const ALL = OPERANDS.flatMap((left) => OPERANDS.map((right) => ({ id: `${left}x${right}`, left, right })));

/** About a quarter of the table, spread evenly over rows and columns. Both orders go together: 8×7 would give 7×8 away. */
function isHeldOut({ left, right }: Problem): boolean {
  return (left + right) % 4 === 3;
}

export const trainingProblems: readonly Problem[] = ALL.filter((problem) => !isHeldOut(problem));

const EXAM_ROUNDS = 5;

/** Each held-out problem several times: a model that samples its answers knows a product more or less. */
export const examProblems: readonly Problem[] = Array.from({ length: EXAM_ROUNDS }, (_, round) =>
  ALL.filter(isHeldOut).map((problem) => ({ ...problem, id: `${problem.id}-${round + 1}` })),
).flat();

export function question({ left, right }: Problem): string {
  return `${left}*${right}=`;
}

/** Exact or nothing: no reward for an answer that merely looks like a number. */
export function grade(answer: string | null, { left, right }: Problem): 0 | 1 {
  return answer === String(left * right) ? 1 : 0;
}
