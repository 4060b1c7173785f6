/**
 * Rows of a SQL query. Node has SQLite from version 22.13 on; before that, and in builds without it, the package
 * node-sqlite3-wasm is used, which needs no compiler.
 */
import { existsSync } from 'node:fs';

import { TemperError } from '../../core/failures.ts';
import {
  resolvePath,
  RowSource,
  unreadable,
  type Identified,
  type MapOptions,
  type Row,
  type RowReading,
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

/** The part that both libraries have. */
interface Database {
  prepare(query: string): { iterate?(): Iterable<unknown>; all(): Iterable<unknown> };
  close(): void;
}

async function* readQuery(file: string, query: string): AsyncGenerator<Row> {
  // SQLite itself says no more than that it cannot open the file.
  if (!existsSync(file))
    throw unreadable(file, 'there is no such file', 'correct its path, relative to the agent file');
  const open = findNodeSqlite() ?? (await importWasm(file));
  let database: Database | undefined;
  try {
    database = open(file);
    const statement = database.prepare(query);
    let number = 0;
    for (const value of statement.iterate?.() ?? statement.all())
      yield { value: { ...(value as object) }, number: ++number };
  } catch (cause) {
    throw unreadable(`the query on ${file}`, cause, 'correct the query or the file');
  } finally {
    database?.close();
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
    return (path) => new wasm.Database(path, { readOnly: true, fileMustExist: true });
  } catch (cause) {
    const rule = `reading ${file} needs SQLite, which Node ${process.versions.node} lacks`;
    throw new TemperError('BadConfig', `${rule}; run npm install node-sqlite3-wasm, or use Node 22.13 or later`, {
      cause,
    });
  }
}
