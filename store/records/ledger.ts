/**
 * Numbered write-once rows, without locks and without gaps: a row is decided from the rows before it, and decided again
 * where another writer has taken its number.
 */
import type { z } from 'zod';

import { decodeJson, encodeJson } from '../bytes/json.ts';
import type { Store } from '../store.ts';
import { parseStored, readStored } from './file-schemas.ts';

const ROWS_AT_ONCE = 32;

export class Ledger<Row> {
  readonly #store: Store;
  readonly #schema: z.ZodType<Row>;
  readonly #keyOf: (index: number) => string;

  /** `keyOf`: key of a row by its index, from 0. */
  constructor(store: Store, schema: z.ZodType<Row>, keyOf: (index: number) => string) {
    this.#store = store;
    this.#schema = schema;
    this.#keyOf = keyOf;
  }

  /** Rows in order, without the first `from`. */
  async read(from = 0): Promise<Row[]> {
    const rows: Row[] = [];
    for (let ahead = 1; ; ahead = Math.min(2 * ahead, ROWS_AT_ONCE)) {
      const keys = Array.from({ length: ahead }, (_, index) => this.#keyOf(from + rows.length + index));
      const read = await Promise.all(keys.map((key) => readStored(this.#store, key, this.#schema)));
      const end = read.indexOf(null);
      rows.push(...read.slice(0, end === -1 ? ahead : end).filter((row) => row !== null));
      if (end !== -1) return rows;
    }
  }

  /** Adds the row that `decide` makes of all rows so far, unless it is null. Returns the rows afterwards, and which of them was added. */
  async append(decide: (rows: readonly Row[]) => Row | null): Promise<{ rows: Row[]; added: Row | null }> {
    const rows = await this.read();
    for (;;) {
      const row = decide(rows);
      if (row === null) return { rows, added: null };
      const key = this.#keyOf(rows.length);
      const { created, bytes } = await this.#store.publish(key, encodeJson(row));
      const stored = parseStored(this.#schema, decodeJson(bytes, key), key);
      rows.push(stored);
      if (created) return { rows, added: stored };
    }
  }
}
