/** Full-text search in a mailbox, by SQLite's FTS5: in memory, and as WebAssembly, so that nothing has to be compiled. */
import sqlite from 'node-sqlite3-wasm';
import type { Mail, Mailbox, Question } from './mail.ts';

export interface Search {
  readonly query: string;
  /** Days, both included. */
  readonly after?: string | undefined;
  readonly before?: string | undefined;
}

export type Hit = Pick<Mail, 'id' | 'date' | 'from' | 'subject'> & { readonly snippet: string };

/** The newest first, for those count. */
const MOST_HITS = 10;
const MOST_WORDS = 20;

const TABLE = `CREATE VIRTUAL TABLE mails USING fts5(sender, recipient, subject, body, date UNINDEXED)`;
const INSERT = 'INSERT INTO mails (rowid, sender, recipient, subject, body, date) VALUES (?, ?, ?, ?, ?, ?)';
const SEARCH = `SELECT rowid AS id, date, sender AS "from", subject, snippet(mails, 3, '', '', '…', 12) AS snippet
  FROM mails WHERE mails MATCH ? AND substr(date, 1, 10) BETWEEN ? AND ? ORDER BY date DESC LIMIT ${MOST_HITS}`;
const READ = `SELECT rowid AS id, date, sender AS "from", recipient AS "to", subject, body FROM mails WHERE rowid = ?`;

export class MailIndex {
  readonly questions: readonly Question[];
  readonly #database = new sqlite.Database();

  constructor({ mails, questions }: Mailbox) {
    this.questions = questions;
    this.#database.exec(TABLE);
    this.#database.exec('BEGIN');
    const insert = this.#database.prepare(INSERT);
    for (const { id, from, to, subject, body, date } of mails) insert.run([id, from, to, subject, body, date]);
    insert.finalize();
    this.#database.exec('COMMIT');
  }

  /** Mails that have all the words. */
  search({ query, after = '0000', before = '9999' }: Search): Hit[] {
    return this.#database.all(SEARCH, [matchAll(query), after, before]) as unknown as Hit[];
  }

  read(id: number): Mail {
    const mail = Number.isSafeInteger(id) ? this.#database.get(READ, [id]) : null;
    if (mail === null) throw new Error('no such id');
    return mail as unknown as Mail;
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

/** Mailboxes by seed. All attempts at a scenario share one; ask for it at each use, for it may have been closed. */
export function openMailboxes(make: (seed: number) => Mailbox, mostOpen: number): (seed: number) => MailIndex {
  const open = new Map<number, MailIndex>();
  return (seed) => {
    const mailbox = open.get(seed) ?? new MailIndex(make(seed));
    // Last in the map is used last.
    open.delete(seed);
    open.set(seed, mailbox);
    const [oldest] = open.keys();
    if (open.size > mostOpen && oldest !== undefined) {
      open.get(oldest)?.close();
      open.delete(oldest);
    }
    return mailbox;
  };
}
