/** Full-text search in a mailbox, by SQLite's FTS5: in memory, and as WebAssembly, so that nothing has to be compiled. */
import sqlite from 'node-sqlite3-wasm';
import type { Mail } from './mailbox.ts';

const MOST_WORDS = 20;

const TABLE = 'CREATE VIRTUAL TABLE mails USING fts5(body, date UNINDEXED)';
const INSERT = 'INSERT INTO mails (rowid, body, date) VALUES (?, ?, ?)';
/** The newest first, for those count. */
const SEARCH = 'SELECT rowid AS id FROM mails WHERE mails MATCH ? ORDER BY date DESC';
const READ = 'SELECT body FROM mails WHERE rowid = ?';

export class MailSearch {
  readonly #database = new sqlite.Database();

  constructor(mails: readonly Mail[]) {
    this.#database.exec(TABLE);
    const insert = this.#database.prepare(INSERT);
    for (const { id, body, date } of mails) insert.run([id, body, date]);
    insert.finalize();
  }

  /** Ids of the mails that have all the words. */
  search(query: string): number[] {
    const hits = this.#database.all(SEARCH, [matchAll(query)]) as unknown as { id: number }[];
    return hits.map(({ id }) => id);
  }

  /** The text of a mail. */
  read(id: number): string {
    const mail = Number.isSafeInteger(id) ? this.#database.get(READ, [id]) : null;
    if (mail === null) throw new Error('no such id');
    return (mail as unknown as { body: string }).body;
  }

  /** SQLite's memory is not the garbage collector's. */
  close(): void {
    this.#database.close();
  }
}

/** Words in quotes: a query has no operators, whatever a model writes. */
function matchAll(query: string): string {
  const words = query.normalize('NFC').match(/[\p{L}\p{N}]+/gu) ?? [];
  if (words.length === 0) throw new Error('query must have a word');
  if (words.length > MOST_WORDS) throw new Error(`query must have at most ${MOST_WORDS} words, got ${words.length}`);
  return words.map((word) => `"${word}"`).join(' ');
}
