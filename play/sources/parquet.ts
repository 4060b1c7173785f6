import { TemperError } from '../../core/contract/failures.ts';
import {
  checkColumns,
  fileSource,
  unreadable,
  type Identified,
  type MapOptions,
  type Row,
  type RowSource,
  withNumbers,
} from './row-source.ts';

/** Rows of a Parquet file. */
export function parquetSource<R, S extends Identified>(
  file: string | URL,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  return fileSource(file, { unit: 'row', isTable: true, read: (path) => readParquet(path) }, options);
}

/** Bounds memory: a row group, which is read at once, may be the whole file. */
const BYTES_AT_ONCE = 32 * 1024 ** 2;

/** `first` rows come before those of this file. */
export async function* readParquet(file: string, first = 0): AsyncGenerator<Row> {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } = await import('hyparquet');
  const { compressors: all } = await import('hyparquet-compressors');
  const compressors = Object.fromEntries(Object.entries(all).map(([codec, read]) => [codec, orNothing(read)]));
  try {
    const buffer = await asyncBufferFromFile(file);
    const metadata = await parquetMetadataAsync(buffer);
    checkColumns(
      parquetSchema(metadata).children.map(({ element }) => element.name),
      file,
      'write it anew',
    );
    let number = first;
    for (const [rowStart, rowEnd] of planReads(metadata.row_groups)) {
      const options = { file: buffer, metadata, compressors, utf8: false, useOffsetIndex: true, rowStart, rowEnd };
      for (const row of await parquetReadObjects(options)) yield { value: withNumbers(row), number: ++number };
    }
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    throw unreadable(file, cause, 'it must be a whole Parquet file without encryption');
  }
}

type Decompress = (bytes: Uint8Array, length: number) => Uint8Array;

/** A column without values has pages of no bytes, which LZ4 writes as one that the library takes for a reference. */
function orNothing(decompress: Decompress): Decompress {
  return (bytes, length) => (length === 0 ? new Uint8Array() : decompress(bytes, length));
}

interface RowGroup {
  readonly num_rows: bigint;
  readonly total_byte_size: bigint;
}

function* planReads(groups: readonly RowGroup[]): Generator<readonly [number, number]> {
  let start = 0;
  for (const group of groups) {
    const end = start + Number(group.num_rows);
    const reads = Math.max(1, Math.ceil(Number(group.total_byte_size) / BYTES_AT_ONCE));
    const rows = Math.ceil(Number(group.num_rows) / reads);
    for (; start < end; start += rows) yield [start, Math.min(start + rows, end)];
    start = end;
  }
}
