/** The worth of a query: its result decides, not its words. */
import { sameRows, type Database, type Rows } from './database.ts';

export interface Question {
  readonly text: string;
  /** A query that answers it: one of many. */
  readonly sql: string;
  /** Whether the rows must come in the query's order. */
  readonly isOrdered: boolean;
}

export interface Graded {
  readonly reward: number;
  /** Why the query does not run; null where it does. */
  readonly complaint: string | null;
  readonly metrics: { readonly correct: boolean; readonly runs: boolean };
}

/** Something to learn from before the first right answer. */
const RUNS = 0.1;

/** Right is what is right in every one of the databases. */
export function grade(query: string, { sql, isOrdered }: Question, databases: readonly Database[]): Graded {
  const results: Rows[] = [];
  try {
    for (const database of databases) results.push(database.query(query));
  } catch (error) {
    const complaint = error instanceof Error ? error.message : String(error);
    return { reward: 0, complaint, metrics: { correct: false, runs: false } };
  }
  const correct = databases.every((database, index) => sameRows(results[index]!, database.query(sql), isOrdered));
  return { reward: correct ? 1 : RUNS, complaint: null, metrics: { correct, runs: true } };
}
