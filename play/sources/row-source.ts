/**
 * Rows of a file, a query or a data set, each of them a scenario, or what `map` makes one of. One interface for all of
 * them: rows with numbers, and a name for messages.
 */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HubDataset } from '../../core/contract/contract.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { Patience } from './ask-again.ts';

/** A value as it was read, and its number for messages: counted from 1, as editors count lines. */
export interface Row {
  readonly value: unknown;
  readonly number: number;
}

/** An id of its own is all that a scenario must have. */
export interface Identified {
  readonly id: string;
}

export interface MapOptions<R, S> {
  /** Makes a scenario of a row; null leaves the row out. `index` counts rows from 0. */
  map?: (row: R, index: number) => S | null;
}

export interface RowReading {
  /** `questions.csv`, for messages. */
  readonly name: string;
  readonly unit: 'line' | 'row';
  /** Whether all rows have the same columns: then `map` may not ask for another. */
  readonly isTable: boolean;
  read(patience: Patience): AsyncIterable<Row>;
  /** Known once rows were read, for the run's record; a file has none: the run keeps its rows. */
  origin?(): HubDataset | undefined;
}

/** A path in an agent file is relative to that file: how to read is known once its folder is. */
type Locate = (folder: string) => RowReading;

/** Registered globally: an agent file may load another copy of this module than the worker that reads the rows. */
const ROW_SOURCE = Symbol.for('temper.row-source');

export class RowSource<S extends Identified> implements AsyncIterable<S> {
  readonly [ROW_SOURCE] = true;
  readonly #locate: Locate;
  readonly #map: MapOptions<never, S>['map'];
  readonly #folder: string;

  constructor(locate: Locate, map: MapOptions<never, S>['map'], folder: string = process.cwd()) {
    this.#locate = locate;
    this.#map = map;
    this.#folder = folder;
  }

  /** The same rows, with relative paths taken from `folder`. */
  in(folder: string): RowSource<S> {
    return new RowSource(this.#locate, this.#map, folder);
  }

  /** Reads anew at each call. */
  open(patience: Patience = {}): OpenRows {
    const reading = this.#locate(this.#folder);
    const remedy = this.#map === undefined ? lacksId(reading) : 'return one from map';
    const placeOf = (number: number): string => `${reading.unit} ${number} of ${reading.name}`;
    const rows = mapped(reading, reading.read(patience), this.#map as MapRow | undefined, placeOf);
    return { rows, placeOf, remedy, origin: () => reading.origin?.() };
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<S> {
    for await (const { value } of this.open().rows) yield value as S;
  }
}

export interface OpenRows {
  readonly rows: AsyncIterable<Row>;
  /** `line 3 of questions.csv` */
  readonly placeOf: (number: number) => string;
  /** Advice for a row that is no scenario. */
  readonly remedy: string;
  readonly origin: () => HubDataset | undefined;
}

export function isRowSource(value: unknown): value is RowSource<Identified> {
  return typeof value === 'object' && value !== null && ROW_SOURCE in value;
}

interface FileFormat {
  readonly unit: RowReading['unit'];
  readonly isTable: boolean;
  read(path: string): AsyncIterable<Row>;
}

export function fileSource<R, S extends Identified>(
  file: string | URL,
  format: FileFormat,
  { map }: MapOptions<R, S>,
): RowSource<S> {
  const locate = (folder: string): RowReading => {
    const path = resolvePath(file, folder);
    return { name: path, unit: format.unit, isTable: format.isTable, read: () => format.read(path) };
  };
  return new RowSource(locate, map);
}

export function resolvePath(file: string | URL, folder: string): string {
  return file instanceof URL ? fileURLToPath(file) : resolve(folder, file);
}

export function unreadable(name: string, cause: unknown, remedy: string): TemperError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return badConfig(`${name} cannot be read: ${text.split('\n')[0]}; ${remedy}`, { cause });
}

function lacksId({ isTable }: RowReading): string {
  return isTable ? 'add a column id, or pass map: (row, index) => ({ ...row, id: String(index) })' : 'give it one';
}

type MapRow = (row: unknown, index: number) => unknown;

async function* mapped(
  { name, isTable }: RowReading,
  rows: AsyncIterable<Row>,
  map: MapRow | undefined,
  placeOf: OpenRows['placeOf'],
): AsyncGenerator<Row> {
  const handler = refuseOtherColumns(name);
  let index = 0;
  for await (const { value, number } of rows) {
    const row = isTable ? new Proxy(value as object, handler) : value;
    const scenario = map === undefined ? value : callMap(map, row, index++, () => placeOf(number));
    if (scenario === null && map !== undefined) continue;
    yield { value: scenario, number };
  }
}

function callMap(map: MapRow, row: unknown, index: number, place: () => string): unknown {
  try {
    const scenario = map(row, index);
    if (!(scenario instanceof Promise)) return scenario;
    // It may be rejected by what it did with the row.
    scenario.catch(() => undefined);
    throw new Error('it returned a promise, and must not be async');
  } catch (cause) {
    const rule = `map must make a scenario of each row, but it threw at ${place()}`;
    throw badConfig(`${rule}: ${String(cause)}; correct map, or return null to leave a row out`, {
      cause,
    });
  }
}

/** A row holds one value for a name: of two columns that share it, one would be lost. */
export function checkColumns(names: readonly string[], of: string, remedy: string): void {
  if (!names.includes('') && new Set(names).size === names.length) return;
  const shown = JSON.stringify(names).slice(0, 200);
  throw badConfig(`columns of ${of} must have names of their own, got ${shown}; ${remedy}`);
}

/** A misspelt column would otherwise be undefined, which JSON drops from every scenario. */
function refuseOtherColumns(name: string): ProxyHandler<object> {
  return {
    get(row, column) {
      if (typeof column === 'symbol' || column in row || column === 'toJSON')
        return Reflect.get(row, column) as unknown;
      throw new Error(`${name} has no column ${JSON.stringify(column)}, only ${Object.keys(row).join(', ')}`);
    },
  };
}

/** Columns of 64-bit integers are read as bigints, which JSON lacks: those that a number holds exactly become numbers. */
export function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map((element) => withNumbers(element));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withNumbers(member)]));
}
