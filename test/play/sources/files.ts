/** Files of rows, as other programs write them. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import sqlite from 'node-sqlite3-wasm';

export function fileOf(name: string, content: string | Uint8Array): string {
  const file = join(mkdtempSync(join(tmpdir(), 'temper-rows-')), name);
  writeFileSync(file, content);
  return file;
}

type Columns = Parameters<typeof parquetWriteBuffer>[0]['columnData'];

export function parquetFile(columnData: Columns, rowGroupSize = 100_000): string {
  return fileOf('rows.parquet', new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize })));
}

export function sqliteFile(statements: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'temper-rows-')), 'rows.db');
  const database = new sqlite.Database(file);
  database.exec(statements);
  database.close();
  return file;
}
