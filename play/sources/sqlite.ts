/**
 * Rows of a SQL query. Node has SQLite from version 22.13 on; before that, and in builds without it, the package
 * node-sqlite3-wasm is used, which needs no compiler.
 */
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import {
  checkColumns,
  resolvePath,
  RowSource,
  unreadable,
  type Identified,
  type MapOptions,
  type Row,
  type RowReading,
  withNumbers,
} from './row-source.ts';

/** Rows of a query on a SQLite file, which is opened for reading. */
export function sqliteSource<R, S extends Identified>(
  file: string | URL,
  query: string,
  { map }: MapOptions<R, S> = {},
): RowSource<S> {
  const locate = (folder: string): RowReading => {
    const path = resolvePath(file, folder);
    return { name: `the query on ${path}`, unit: 'row', isTable: true, read: () => readQuery(path, query) };
  };
  return new RowSource(locate, map);
}

/** The part that both libraries have; integers that a number does not hold exactly are bigints. */
interface Database {
  prepare(query: string): Statement;
  close(): void;
}

interface Statement {
  iterate?(): Iterable<unknown>;
  all(): Iterable<unknown>;
  /** Node has it from version 22.16 on. */
  columns?(): readonly { readonly name: string }[];
  /** Node's library alone has it: without, a large integer is an error. */
  setReadBigInts?(enabled: boolean): void;
  /** The other library alone has it, and does not close a database before. */
  finalize?(): void;
}

async function* readQuery(file: string, query: string): AsyncGenerator<Row> {
  // SQLite itself says no more than that it cannot open the file.
  if (!existsSync(file))
    throw unreadable(file, 'there is no such file', 'correct its path, relative to the agent file');
  const open = findNodeSqlite() ?? (await importWasm(file));
  let database: Database | undefined;
  let statement: Statement | undefined;
  let number = 0;
  try {
    database = open(file);
    statement = database.prepare(query);
    statement.setReadBigInts?.(true);
    for (const value of statement.iterate?.() ?? statement.all()) {
      if (number === 0)
        checkColumns(namesOf({ database, statement }, query, value), `the query on ${file}`, 'name them with "as"');
      yield { value: withNumbers({ ...(value as object) }), number: ++number };
    }
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    const row = number === 0 ? '' : `row ${number + 1} of `;
    throw unreadable(`${row}the query on ${file}`, cause, 'correct the query or the file');
  } finally {
    if (database !== undefined) close(database, statement);
  }
}

interface Prepared {
  readonly database: Database;
  readonly statement: Statement;
}

/** A row has the last of columns of one name alone; of a subquery's, SQLite numbers the others: `id:1`. */
function namesOf({ database, statement }: Prepared, query: string, row: unknown): string[] {
  const own = Object.keys(row as object);
  const columns = statement.columns?.();
  if (columns !== undefined) return columns.map(({ name }) => name);
  const inner = prepareInner(database, query) ?? prepareInner(database, query.slice(0, query.lastIndexOf(';')));
  // `pragma` and `explain` are no subqueries, and name their columns themselves.
  if (inner === null) return own;
  inner.setReadBigInts?.(true);
  const [numbered = row] = inner.all();
  inner.finalize?.();
  const all = Object.keys(numbered as object);
  return all.length > own.length ? all.map((each) => each.replace(/:\d+$/, '')) : all;
}

function prepareInner(database: Database, query: string): Statement | null {
  try {
    return database.prepare(`select * from (${query}\n) limit 1`);
  } catch {
    return null;
  }
}

function close(database: Database, statement: Statement | undefined): void {
  try {
    statement?.finalize?.();
  } catch {
    // It throws the statement's error again, which is told already.
  } finally {
    database.close();
  }
}

type Open = (file: string) => Database;

interface NodeSqlite {
  readonly DatabaseSync: new (file: string, options: { readOnly: boolean }) => Database;
}

function findNodeSqlite(): Open | null {
  const node = process.getBuiltinModule?.('node:sqlite') as NodeSqlite | undefined;
  return node === undefined ? null : (file) => new node.DatabaseSync(file, { readOnly: true });
}

async function importWasm(file: string): Promise<Open> {
  try {
    const { default: wasm } = await import('node-sqlite3-wasm');
    return (path) => openElsewhere(path, (link) => new wasm.Database(link, { readOnly: true, fileMustExist: true }));
  } catch (cause) {
    const rule = `reading ${file} needs SQLite, which Node ${process.versions.node} lacks`;
    throw badConfig(`${rule}; run npm install node-sqlite3-wasm, or use Node 22.13 or later`, {
      cause,
    });
  }
}

/**
 * The library locks a database by a folder beside it, which shuts out other readers, and all of them for good after a kill.
 * A link in a folder of its own has a lock of its own.
 */
function openElsewhere(file: string, open: Open): Database {
  const folder = mkdtempSync(join(tmpdir(), 'temper-sqlite-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const link = join(folder, 'database');
    symlinkSync(file, link);
    const database = open(link);
    return {
      prepare: (query) => database.prepare(query),
      close() {
        database.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}
