/**
 * The index of one run on disk: `attempts.log`, a line for each group with its rows, and `text` and `lower`, the words of
 * its attempts, the second in lower case at the same bytes. All are only appended to; a line is written after its words.
 * A torn end is cut off, and files of another version or another run of the name are begun anew.
 */
import { mkdir, open, rm, stat, truncate, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import pLimit from 'p-limit';
import type { AttemptRow } from '../api/attempt-views.ts';
import { errorCode } from '../../store/bytes/file-system.ts';
import type { SearchText } from './attempt-text.ts';

/** Changes with what a row has. */
const VERSION = 2;
const LOG = 'attempts.log';
const READ_BYTES = 1 << 20;
/** About a kilobyte each. */
const MOST_KEPT_ROWS = 25_000;
const NEWLINE = 10;
const TAB = 9;

/** A row with the range of its words. */
export type IndexedRow = readonly [row: AttemptRow, textAt: number, textBytes: number];

/** A group in the log. */
export interface LoggedGroup {
  readonly branch: number;
  readonly step: number;
  /** -1: an evaluation. */
  readonly group: number;
  readonly isJudged: boolean;
  readonly rows: number;
  /** Range of its rows in the log. */
  readonly at: number;
  readonly bytes: number;
}

/** Beginning of a line: `[branch, step, group, isJudged, rows, textEnd, crc32]`; rows of -1: the step is settled. */
type LineHead = [number, number, number, 0 | 1, number, number, number];
const SETTLED = -1;

export class IndexFiles {
  readonly #folder: string;
  readonly #identity: string;
  /** A line is counted once: by who reads it, or by who has written it. */
  readonly #alone = pLimit(1);
  #groups = new Map<string, LoggedGroup>();
  #settled = new Set<string>();
  /** Bytes of the log that were read, and the file that they were read from. */
  #logBytes = 0;
  #textBytes = 0;
  #inode = -1;
  #rows = new Map<LoggedGroup, readonly IndexedRow[]>();
  #keptRows = 0;

  /** `identity` names the run: another one of the same name has another. */
  constructor(folder: string, identity: string) {
    this.#folder = folder;
    this.#identity = identity;
  }

  get groups(): ReadonlyMap<string, LoggedGroup> {
    return this.#groups;
  }

  isSettled(branch: number, step: number): boolean {
    return this.#settled.has(`${branch}.${step}`);
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  /** Takes up what was appended, by this process or another, or that the files are gone. */
  refresh(): Promise<void> {
    return this.#alone(() => this.#refresh());
  }

  async #refresh(): Promise<void> {
    const found = await statOrNull(this.path(LOG));
    if (found === null || found.ino !== this.#inode || found.size < this.#logBytes) this.#reset(found?.ino ?? -1);
    if (found === null || found.size === this.#logBytes) return;
    await this.#readLog(found.size);
  }

  #reset(inode: number): void {
    this.#groups = new Map();
    this.#settled = new Set();
    this.#logBytes = 0;
    this.#textBytes = 0;
    this.#inode = inode;
    this.#rows = new Map();
    this.#keptRows = 0;
  }

  /** Rows that were read before; null: they are in the file alone. */
  knownRows(group: LoggedGroup): readonly IndexedRow[] | null {
    return this.#rows.get(group) ?? null;
  }

  /** Keeps rows in memory, up to a bound. */
  keepRows(group: LoggedGroup, rows: readonly IndexedRow[]): void {
    if (this.#keptRows + rows.length > MOST_KEPT_ROWS || this.#groups.get(keyOf(group)) !== group) return;
    this.#rows.set(group, rows);
    this.#keptRows += rows.length;
  }

  async #readLog(size: number): Promise<void> {
    const text = await statOrNull(this.path('lower'));
    const handle = await open(this.path(LOG), 'r');
    try {
      if (this.#logBytes === 0 && !(await this.#readHeader(handle))) return;
      await this.#readLines(handle, size, text?.size ?? 0);
    } finally {
      await handle.close();
    }
  }

  /** False: the file is of another version or another run. */
  async #readHeader(handle: FileHandle): Promise<boolean> {
    const expected = Buffer.from(this.#header());
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(expected.length), 0, expected.length, 0);
    if (bytesRead < expected.length || !buffer.equals(expected)) return false;
    this.#logBytes = expected.length;
    return true;
  }

  #header(): string {
    return `${JSON.stringify({ version: VERSION, identity: this.#identity })}\n`;
  }

  async #readLines(handle: FileHandle, size: number, textSize: number): Promise<void> {
    let pending = Buffer.alloc(0);
    let at = this.#logBytes;
    while (at < size) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      pending = Buffer.concat([pending, buffer.subarray(0, bytesRead)]);
      for (let end = pending.indexOf(NEWLINE); end >= 0; end = pending.indexOf(NEWLINE)) {
        if (!this.#takeLine(pending.subarray(0, end), textSize)) return;
        pending = pending.subarray(end + 1);
      }
    }
  }

  /** False for a damaged line: nothing after it counts. */
  #takeLine(line: Buffer, textSize: number): boolean {
    const tab = line.indexOf(TAB);
    const head = tab < 0 ? null : parseHead(line.subarray(0, tab).toString('latin1'));
    if (head === null || head[5] > textSize || crc32(line.subarray(tab + 1)) !== head[6]) return false;
    this.#note(head, this.#logBytes + tab + 1, line.length - tab - 1);
    this.#logBytes += line.length + 1;
    return true;
  }

  #note([branch, step, group, isJudged, rows, textEnd]: LineHead, at: number, bytes: number): void {
    this.#textBytes = Math.max(this.#textBytes, textEnd);
    if (rows === SETTLED) {
      this.#settled.add(`${branch}.${step}`);
      return;
    }
    const key = groupKey(branch, step, group);
    this.#forgetRows(this.#groups.get(key));
    // A later line replaces an earlier one; the order stays that of the file.
    this.#groups.delete(key);
    this.#groups.set(key, { branch, step, group, isJudged: isJudged === 1, rows, at, bytes });
  }

  #forgetRows(group: LoggedGroup | undefined): void {
    const rows = group && this.#rows.get(group);
    if (group === undefined || rows === undefined) return;
    this.#rows.delete(group);
    this.#keptRows -= rows.length;
  }

  /** Opens the files for appending, with what is whole of them, in the one process that has the lock. */
  async openWriter(): Promise<IndexWriter> {
    await mkdir(this.#folder, { recursive: true });
    await this.#alone(() => this.#makeWhole());
    const handles = await Promise.all([LOG, 'text', 'lower'].map((name) => open(this.path(name), 'a')));
    const [log, text, lower] = handles as [FileHandle, FileHandle, FileHandle];
    return {
      appendGroup: async (group, rows, words) => {
        await this.#requireUnchanged(text, this.#textBytes);
        const ranged = rangesOf(rows, words, this.#textBytes);
        await Promise.all([
          text.appendFile(Buffer.concat(words.map((each) => each.text))),
          lower.appendFile(Buffer.concat(words.map((each) => each.lower))),
        ]);
        const end = this.#textBytes + words.reduce((sum, each) => sum + each.text.length, 0);
        const { branch, step, isJudged } = group;
        await this.#appendLine(log, [branch, step, group.group ?? -1, isJudged ? 1 : 0, rows.length, end], ranged);
      },
      settle: async (branch, step) => {
        if (this.isSettled(branch, step)) return;
        await this.#appendLine(log, [branch, step, -1, 1, SETTLED, this.#textBytes], []);
      },
      close: async () => {
        await Promise.all(handles.map((handle) => handle.close()));
      },
    };
  }

  async #makeWhole(): Promise<void> {
    await this.#refresh();
    if (this.#logBytes === 0) return this.#begin();
    await this.#cut(LOG, this.#logBytes);
    for (const name of ['text', 'lower']) await this.#cut(name, this.#textBytes);
  }

  #appendLine(log: FileHandle, head: readonly number[], rows: readonly IndexedRow[]): Promise<void> {
    return this.#alone(() => this.#writeLine(log, head, rows));
  }

  async #writeLine(log: FileHandle, head: readonly number[], rows: readonly IndexedRow[]): Promise<void> {
    const body = Buffer.from(JSON.stringify(rows));
    const full = [...head, crc32(body)] as LineHead;
    const start = Buffer.from(`${JSON.stringify(full)}\t`);
    const line = Buffer.concat([start, body, Buffer.of(NEWLINE)]);
    await log.appendFile(line);
    this.#note(full, this.#logBytes + start.length, body.length);
    this.#logBytes += line.length;
  }

  /** A process that stood still for long may have lost its lock, and another one writes. */
  async #requireUnchanged(text: FileHandle, bytes: number): Promise<void> {
    const found = await text.stat();
    if (found.size !== bytes || found.nlink === 0) throw new IndexTaken();
  }

  async #begin(): Promise<void> {
    await Promise.all([LOG, 'text', 'lower'].map((name) => rm(this.path(name), { force: true })));
    await Promise.all(['text', 'lower'].map((name) => writeFile(this.path(name), '')));
    await writeFile(this.path(LOG), this.#header());
    this.#reset((await stat(this.path(LOG))).ino);
    this.#logBytes = Buffer.byteLength(this.#header());
  }

  async #cut(name: string, bytes: number): Promise<void> {
    const found = await stat(this.path(name));
    if (found.size > bytes) await truncate(this.path(name), bytes);
  }
}

export interface IndexWriter {
  appendGroup(
    group: {
      readonly branch: number;
      readonly step: number;
      readonly group: number | null;
      readonly isJudged: boolean;
    },
    rows: readonly AttemptRow[],
    words: readonly SearchText[],
  ): Promise<void>;
  settle(branch: number, step: number): Promise<void>;
  close(): Promise<void>;
}

/** Another process writes the files, or they were deleted. */
export class IndexTaken extends Error {}

export function groupKey(branch: number, step: number, group: number | null): string {
  return `${branch}.${step}.${group ?? -1}`;
}

const keyOf = ({ branch, step, group }: LoggedGroup): string => groupKey(branch, step, group);

function rangesOf(rows: readonly AttemptRow[], words: readonly SearchText[], start: number): IndexedRow[] {
  let at = start;
  return rows.map((row, index) => {
    const bytes = words[index]!.text.length;
    at += bytes;
    return [row, at - bytes, bytes];
  });
}

function parseHead(text: string): LineHead | null {
  try {
    const head = JSON.parse(text) as unknown;
    const isHead = Array.isArray(head) && head.length === 7 && head.every((value) => typeof value === 'number');
    return isHead ? (head as LineHead) : null;
  } catch {
    return null;
  }
}

async function statOrNull(file: string): Promise<{ readonly size: number; readonly ino: number } | null> {
  try {
    return await stat(file);
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null;
    throw error;
  }
}
