/** A SQLite database in memory for whatever query a model writes: it can be read only, and in bounded time. */
import sqlite from 'node-sqlite3-wasm';

type Value = number | bigint | string | null;
export type Rows = readonly (readonly Value[])[];

/** Tables have some dozens of rows each, and nothing interrupts SQLite: so many of them are joined in a second or two. */
const MAX_TABLES = 4;
const MAX_ROWS = 1000;

/** Words that may stand before a parenthesis: pure functions with small results, and syntax. */
const CALLABLE = new Set(
  [
    'abs avg coalesce count iif ifnull length lower max min nullif round substr sum total trim upper',
    'all and as between by case cast distinct else except exists from having in intersect join like limit not',
    'on or order over partition select then union using values when where',
  ].flatMap((names) => names.split(' ')),
);

export class Database {
  readonly #database = new sqlite.Database();

  /** The schema, and rows by table. */
  constructor(schema: string, tables: Readonly<Record<string, Rows>>) {
    this.#database.exec(schema);
    this.#database.exec('BEGIN');
    for (const [table, rows] of Object.entries(tables)) {
      const places = rows[0]?.map(() => '?').join(', ');
      const insert = this.#database.prepare(`INSERT INTO ${table} VALUES (${places})`);
      for (const row of rows) insert.run([...row]);
      insert.finalize();
    }
    this.#database.exec('COMMIT');
  }

  /** Throws what SQLite says about a query that it cannot run, or what this database refuses. */
  query(sql: string): Rows {
    checkReadable(sql);
    const tables = this.#all(`EXPLAIN QUERY PLAN ${sql}`).filter(({ detail }) => isRead(detail)).length;
    if (tables > MAX_TABLES) throw new Error(`a query may read at most ${MAX_TABLES} tables, got ${tables}`);
    const columns = this.#all(`EXPLAIN ${sql}`).find(({ opcode }) => opcode === 'ResultRow')?.['p2'];
    const rows = this.#all(sql).map((row) => Object.values(row));
    if (rows.length > MAX_ROWS) throw new Error(`a query may return at most ${MAX_ROWS} rows`);
    // A row comes by names: where two are the same, it has one of the two columns.
    if (rows.some((row) => row.length !== columns)) throw new Error('columns must have different names');
    return rows;
  }

  #all(sql: string): Record<string, Value>[] {
    return this.#database.all(sql) as unknown as Record<string, Value>[];
  }
}

/** A step of SQLite's plan that goes through a table. */
function isRead(step: Value | undefined): boolean {
  return typeof step === 'string' && /^(?:SCAN|SEARCH) /.test(step);
}

/** One SELECT that writes nothing, opens no file, ends, and gives the same result whenever it is run. */
function checkReadable(sql: string): void {
  const bare = sql.replaceAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]/g, (quoted) =>
    quoted.startsWith("'") ? "''" : 'quoted',
  );
  if (!/^\s*select\b/i.test(bare)) throw new Error('a query must begin with SELECT');
  if (/;\s*\S/.test(bare)) throw new Error('only one query may be given');
  if (/--|\/\*/.test(bare)) throw new Error('comments are not available');
  const [word] = /\b(?:with|current_\w+)\b/i.exec(bare) ?? [];
  if (word !== undefined) throw new Error(`${word} is not available`);
  const called = [...bare.matchAll(/(\w+)\s*\(/g)].map(([, name = '']) => name);
  const unknown = called.find((name) => !CALLABLE.has(name.toLowerCase()));
  if (unknown !== undefined) throw new Error(`the function ${unknown} is not available`);
}

/** Whether two results say the same. The order of rows counts where a question asks for one. */
export function sameRows(left: Rows, right: Rows, isOrdered: boolean): boolean {
  const [one, other] = [left, right].map((rows) => {
    const lines = rows.map((row) => JSON.stringify(row.map(comparable)));
    return JSON.stringify(isOrdered ? lines : lines.toSorted());
  });
  return one === other;
}

/** Sums of fractions depend on the order in which a query reads its rows. */
function comparable(value: Value): string | number | null {
  if (typeof value === 'number') return Number(value.toPrecision(9));
  return value === null ? null : `${typeof value} ${value}`;
}
