/** Questions of `inside.ts` in TypeScript, and `outside.py` in Python: three in turn, each of which needs the answer before. */
export interface Questions {
  readonly id: string;
  readonly left: number;
  readonly right: number;
}

export function questions(set: string, count: number): Questions[] {
  return Array.from({ length: count }, (_, index) => {
    return { id: `${set}-${index}`, left: 2 + (index % 8), right: 3 + (index % 5) };
  });
}

export const TURNS = 3;
