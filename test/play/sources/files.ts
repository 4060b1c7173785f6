/** Files of rows, as other programs write them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import sqlite from 'node-sqlite3-wasm';

import { temporaryFolder } from '../../temporary-folder.ts';

export function fileOf(name: string, content: string | Uint8Array): string {
  const file = join(temporaryFolder(), name);
  writeFileSync(file, content);
  return file;
}

type Writing = Parameters<typeof parquetWriteBuffer>[0];

export function parquetFile(columnData: Writing['columnData'], options: Omit<Writing, 'columnData'> = {}): string {
  return fileOf('rows.parquet', new Uint8Array(parquetWriteBuffer({ columnData, ...options })));
}

/** An LZ4 block of fewer than 15 literals, or of 15 to 269. */
export function asLz4(bytes: Uint8Array): Uint8Array {
  const { length } = bytes;
  return Uint8Array.from(length < 15 ? [length << 4, ...bytes] : [240, length - 15, ...bytes]);
}

export function sqliteFile(statements: string): string {
  const file = join(temporaryFolder(), 'rows.db');
  const database = new sqlite.Database(file);
  database.exec(statements);
  database.close();
  return file;
}
