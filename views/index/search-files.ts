/** Search over an index's files, in bounded memory: rows first, then words of the rows that match. */
import { open, type FileHandle } from 'node:fs/promises';
import { errorCode } from '../../store/bytes/file-system.ts';
import {
  DEFAULT_LIMIT,
  rowMatcher,
  canMatchGroup,
  ORDERS,
  type Compare,
  parseAttemptQuery,
  type AttemptQuery,
} from '../api/attempt-query.ts';
import type { AttemptRow, AttemptsView } from '../api/attempt-views.ts';
import { lowerInPlace } from './attempt-text.ts';
import type { IndexedRow, IndexFiles, LoggedGroup } from './index-files.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { NotFound, type ViewContext } from '../context/context.ts';
import { runKey } from '../../store/layout.ts';

const READ_BYTES = 1 << 20;
const EXCERPT_BYTES = 60;
/** Ranges with fewer bytes between them are read at once. */
const GAP_BYTES = 64 << 10;

interface Range {
  readonly at: number;
  readonly bytes: number;
}

interface Match extends Range {
  readonly row: AttemptRow;
  /** Place of the text in the words; -1: none was looked for. */
  readonly found: number;
}

type Found = Pick<AttemptsView, 'total' | 'rows' | 'excerpts'>;

export async function searchFiles(files: IndexFiles, query: AttemptQuery): Promise<Found> {
  const { sort = 'newest', offset = 0, limit = DEFAULT_LIMIT, text } = query;
  const matches = rowMatcher(query);
  const { groups, before, total } = pickGroups(query, files.groups.values(), limit);
  const best = new BestMatches<Match>(sort, offset - before + limit);
  const needle = text === undefined || text === '' ? null : Buffer.from(lowerInPlace(text.toWellFormed()));
  const readers = await openAll([files.path('attempts.log'), files.path('lower'), files.path('text')]);
  if (readers === null) return { total: 0, rows: [], excerpts: {} };
  const [log, lower, words] = readers as [FileHandle, FileHandle, FileHandle];
  try {
    const chunks = new ChunkReader();
    for await (const rows of rowsOf(files, log, groups, chunks)) {
      const own = rows.filter(([row]) => matches(row)).map(toMatch);
      const found = needle === null ? own : await lookFor(lower, own, needle, chunks);
      for (const match of found) best.add(match);
    }
    const shown = best.sorted().slice(offset - before);
    const excerpts =
      needle === null ? [] : await Promise.all(shown.map((match) => excerptOf(words, match, needle.length)));
    return { total: total ?? best.total, rows: shown.map(({ row }) => row), excerpts: Object.fromEntries(excerpts) };
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
  }
}

const toMatch = ([row, at, bytes]: IndexedRow): Match => ({ row, at, bytes, found: -1 });

/** Null: the files are not there, or not any more. */
async function openAll(paths: readonly string[]): Promise<FileHandle[] | null> {
  const opened: FileHandle[] = [];
  try {
    for (const path of paths) opened.push(await open(path, 'r'));
    return opened;
  } catch (error) {
    await Promise.all(opened.map((handle) => handle.close()));
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null;
    throw error;
  }
}

/** Rows of the groups, those in memory first, then some thousand of the file at once. */
async function* rowsOf(
  files: IndexFiles,
  log: FileHandle,
  groups: readonly LoggedGroup[],
  chunks: ChunkReader,
): AsyncGenerator<readonly IndexedRow[]> {
  const known: IndexedRow[] = [];
  const others: LoggedGroup[] = [];
  for (const group of groups) {
    const rows = files.knownRows(group);
    if (rows === null) others.push(group);
    else for (const row of rows) known.push(row);
  }
  yield known;
  for (const together of coalesce(others)) {
    const { at, chunk } = await chunks.read(log, together);
    yield together.flatMap((group) => {
      const start = group.at - at;
      const rows = JSON.parse(chunk.toString('utf8', start, start + group.bytes)) as IndexedRow[];
      files.keepRows(group, rows);
      return rows;
    });
  }
}

/** The matches whose words have the text, with its place. */
async function lookFor(
  lower: FileHandle,
  matches: readonly Match[],
  needle: Buffer,
  chunks: ChunkReader,
): Promise<Match[]> {
  const found: Match[] = [];
  for (const together of coalesce(matches)) {
    const { at, chunk } = await chunks.read(lower, together);
    let next = -2;
    for (const match of together) {
      const start = match.at - at;
      // One search over the whole chunk answers for all rows before the next place.
      if (next !== -1 && next < start) next = chunk.indexOf(needle, start);
      if (next !== -1 && next + needle.length <= start + match.bytes) found.push({ ...match, found: at + next });
    }
  }
  return found;
}

/** Neighbours in the file, in its order, that are read at once. */
function coalesce<T extends Range>(ranges: readonly T[]): T[][] {
  const chunks: T[][] = [];
  let [start, end] = [0, -Infinity];
  for (const range of ranges.toSorted((a, b) => a.at - b.at)) {
    const last = range.at + range.bytes;
    if (range.at - end < GAP_BYTES && last - start <= READ_BYTES) chunks.at(-1)!.push(range);
    else {
      chunks.push([range]);
      start = range.at;
    }
    end = last;
  }
  return chunks;
}

interface Chunk {
  readonly at: number;
  /** Valid until the next chunk is read. */
  readonly chunk: Buffer;
}

/** Reads chunk after chunk into the same memory: new memory for each would pile up faster than it is collected. */
class ChunkReader {
  #memory = Buffer.alloc(0);

  async read(file: FileHandle, ranges: readonly Range[]): Promise<Chunk> {
    const at = ranges[0]!.at;
    const last = ranges.at(-1)!;
    const length = last.at + last.bytes - at;
    if (length > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(Math.max(length, READ_BYTES));
    const { bytesRead } = await file.read(this.#memory, 0, length, at);
    return { at, chunk: this.#memory.subarray(0, bytesRead) };
  }
}

/** The text with some words around it, in its own case. */
async function excerptOf(words: FileHandle, match: Match, needleBytes: number): Promise<[string, string]> {
  const from = Math.max(match.at, match.found - EXCERPT_BYTES);
  const to = Math.min(match.at + match.bytes, match.found + needleBytes + EXCERPT_BYTES);
  const { buffer, bytesRead } = await words.read(Buffer.alloc(to - from), 0, to - from, from);
  // A range may begin or end within a character.
  const text = buffer.toString('utf8', 0, bytesRead).replaceAll(/^\uFFFD+|(?<!\uFFFD)\uFFFD+$/g, '');
  const [before, after] = [from > match.at ? '… ' : '', to < match.at + match.bytes ? ' …' : ''];
  return [match.row.id, `${before}${text.replaceAll(/\s+/g, ' ').trim()}${after}`];
}

interface PickedGroups {
  readonly groups: readonly LoggedGroup[];
  /** Rows of the order before the first of these groups. */
  readonly before: number;
  /** Number of rows that match; null: their rows tell. */
  readonly total: number | null;
}

/** Parameters that say where rows are, or which page of them is asked for; every other one looks into rows or words. */
const OF_PLACES: ReadonlySet<keyof AttemptQuery> = new Set(['kind', 'fromStep', 'toStep', 'sort', 'offset', 'limit']);

/** Groups that a search has to read: for a page of all attempts by their place, those of the page alone. Pure. */
function pickGroups(query: AttemptQuery, all: Iterable<LoggedGroup>, limit: number): PickedGroups {
  const groups = [...all].filter(({ step, group }) => canMatchGroup(query, { step, isEval: group < 0 }));
  const { sort = 'newest', offset = 0 } = query;
  const isByPlace = sort === 'newest' || sort === 'oldest';
  if (!isByPlace || !Object.keys(query).every((name) => OF_PLACES.has(name as keyof AttemptQuery)))
    return { groups, before: 0, total: null };
  const picked: LoggedGroup[] = [];
  let [at, before] = [0, 0];
  for (const group of groups.toSorted(sort === 'newest' ? newestFirst : oldestFirst)) {
    if (at + group.rows <= offset) before += group.rows;
    else if (at < offset + limit) picked.push(group);
    at += group.rows;
  }
  return { groups: picked, before, total: at };
}

/** An evaluation comes after the groups of its step. */
const placeIn = ({ group }: LoggedGroup): number => (group < 0 ? Infinity : group);
const byGroup = (one: LoggedGroup, other: LoggedGroup): number =>
  placeIn(one) === placeIn(other) ? 0 : placeIn(one) - placeIn(other);
const oldestFirst = (one: LoggedGroup, other: LoggedGroup): number =>
  one.branch - other.branch || one.step - other.step || byGroup(one, other);
const newestFirst = (one: LoggedGroup, other: LoggedGroup): number =>
  other.branch - one.branch || other.step - one.step || byGroup(one, other);

/** The best of many in bounded memory. */
export class BestMatches<T extends { readonly row: AttemptRow }> {
  readonly #most: number;
  readonly #compare: Compare;
  #kept: T[] = [];
  /** Number of all that were added. */
  total = 0;

  constructor(sort: NonNullable<AttemptQuery['sort']>, most: number) {
    this.#compare = ORDERS[sort];
    this.#most = most;
  }

  add(match: T): void {
    this.total += 1;
    this.#kept.push(match);
    if (this.#kept.length > 2 * this.#most + 1000) this.#kept = this.sorted();
  }

  sorted(): T[] {
    return this.#kept.toSorted((one, other) => this.#compare(one.row, other.row)).slice(0, this.#most);
  }
}

/** `runs/RUN/attempts`: the query of a search over a run's attempts. */
export async function searchAttempts(context: ViewContext, run: string, query: URLSearchParams): Promise<AttemptsView> {
  const asked = parseAttemptQuery(query);
  if (!NAME_PATTERN.test(run) || (await context.store.read(runKey(run))) === null)
    throw new NotFound(`the store ${context.store.uri} has no run ${run}`);
  return context.index.search(run, asked);
}
