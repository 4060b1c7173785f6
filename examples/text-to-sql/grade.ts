/** The reward of a query: its result decides, not its words. */
import { sameRows, type Database, type Rows } from './database.ts';

export interface Question {
  readonly text: string;
  /** A query that answers it: one of many. */
  readonly sql: string;
  /** Whether the rows must come in the query's order. */
  readonly isOrdered: boolean;
}

/** Something to learn from before the first right answer. */
const RUNS = 0.1;

/** Right is what is right in every one of the databases. */
export function grade(query: string, { sql, isOrdered }: Question, databases: readonly Database[]) {
  const results: Rows[] = [];
  try {
    for (const database of databases) results.push(database.query(query));
  } catch {
    // SQLite cannot run it, or the database refuses it.
    return { reward: 0, metrics: { correct: false, runs: false } };
  }
  const correct = databases.every((database, index) => sameRows(results[index]!, database.query(sql), isOrdered));
  return { reward: correct ? 1 : RUNS, metrics: { correct, runs: true } };
}
