import { createReadStream } from 'node:fs';

import { TemperError } from '../../core/failures.ts';
import { fileSource, unreadable, type Identified, type MapOptions, type Row, type RowSource } from './row-source.ts';

export interface CsvOptions<R, S> extends MapOptions<R, S> {
  /** Default: a comma, or a tab for a file that ends in `.tsv`. */
  delimiter?: string;
}

/** Rows of a CSV file, whose first line names the columns. Values are texts. */
export function csvSource<R, S extends Identified>(
  file: string | URL,
  { delimiter, ...options }: CsvOptions<R, S> = {},
): RowSource<S> {
  const read = (path: string) => readCsv(path, delimiter ?? (/\.tsv$/i.test(path) ? '\t' : ','));
  return fileSource(file, { unit: 'line', isTable: true, read }, options);
}

interface CsvRecord {
  readonly record: Record<string, string>;
  /** `lines` is the number of the record's last one. */
  readonly info: { readonly lines: number };
}

async function* readCsv(file: string, delimiter: string): AsyncGenerator<Row> {
  const { parse } = await import('csv-parse');
  const columns = (names: string[]): string[] => checkColumns(names, file);
  const records = parse({ columns, bom: true, info: true, skip_empty_lines: true, delimiter });
  const bytes = createReadStream(file);
  bytes.on('error', (error) => records.destroy(error)).pipe(records);
  try {
    for await (const { record, info } of records as AsyncIterable<CsvRecord>)
      yield { value: record, number: info.lines };
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    throw unreadable(file, cause, 'the first line names the columns, and each record has as many fields');
  } finally {
    bytes.destroy();
  }
}

function checkColumns(names: string[], file: string): string[] {
  const wrong = names.find((name, index) => name === '' || names.indexOf(name) !== index);
  if (wrong === undefined) return names;
  throw new TemperError(
    'BadConfig',
    `columns of ${file} must have names of their own, got ${JSON.stringify(names)}; correct its first line`,
  );
}
