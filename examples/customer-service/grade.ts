/** An attempt's worth: the database is in the expected state, and the customer was told what had to be said. */
import type { Task } from './task.ts';

export interface Outcome {
  readonly state: boolean;
  readonly statements: boolean;
}

export function grade({ desk, expected, statements }: Task, said: readonly string[]): Outcome {
  const text = said.map(normalise).join('\n');
  return { state: desk.digest() === expected, statements: statements.every((each) => isSaid(each, text)) };
}

/** Statements are whole words: `48` is not said with `148`, nor with `48.50`, but with `48.00 euros`. */
function isSaid(statement: string, text: string): boolean {
  const escaped = normalise(statement).replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}]|\\d[.,])${escaped}(?:\\.00)?(?![\\p{L}\\p{N}]|[.,]\\d)`, 'u').test(text);
}

function normalise(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/(?<=\d),(?=\d{3}(?!\d))/g, '')
    .replaceAll(/\s+/g, ' ');
}
