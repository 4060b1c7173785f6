/** The multiplication table from 2×2 to 9×9. */
export interface Product {
  readonly id: string;
  readonly left: number;
  readonly right: number;
}

const numbers = [2, 3, 4, 5, 6, 7, 8, 9];

export const products: readonly Product[] = numbers.flatMap((left) =>
  numbers.map((right) => ({ id: `${left}x${right}`, left, right })),
);

export function question({ left, right }: Product): string {
  return `${left}*${right}=`;
}

export function grade(answer: string | null, { left, right }: Product): number {
  return answer === String(left * right) ? 1 : 0;
}
