import { Readable } from 'node:stream';

import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { decodeFile } from './decode-file.ts';
import {
  checkColumns,
  fileSource,
  unreadable,
  type Identified,
  type MapOptions,
  type Row,
  type RowSource,
} from './row-source.ts';

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

/** Bounds memory: an open quote makes one record of all that follows. */
const MOST_RECORD = 32 * 1024 ** 2;

interface CsvRecord {
  readonly record: Record<string, string>;
  /** `lines` is the number of the record's last one. */
  readonly info: { readonly lines: number };
}

async function* readCsv(file: string, delimiter: string): AsyncGenerator<Row> {
  const { parse } = await import('csv-parse');
  const columns = (names: string[]): string[] => checkHeader(names, file);
  const limits = { max_record_size: MOST_RECORD };
  const records = parse({ columns, info: true, skip_empty_lines: true, delimiter, ...limits });
  const texts = Readable.from(decodeFile(file));
  texts.on('error', (error) => records.destroy(error)).pipe(records);
  try {
    for await (const { record, info } of records as AsyncIterable<CsvRecord>)
      yield { value: record, number: info.lines };
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    throw unreadable(file, cause, 'the first line names the columns, and each record has as many fields');
  } finally {
    texts.destroy();
  }
}

function checkHeader(names: string[], file: string): string[] {
  const [delimiter] = names.length === 1 ? (/[;\t|]/.exec(names[0] ?? '') ?? []) : [];
  if (delimiter !== undefined) {
    const shown = JSON.stringify(names).slice(0, 200);
    const remedy = `pass csv(…, { delimiter: ${JSON.stringify(delimiter)} })`;
    throw badConfig(`columns of ${file} must be separated by commas, got ${shown}; ${remedy}`);
  }
  const index = names.includes('') ? ', or write it without an index (pandas: index=False)' : '';
  checkColumns(names, file, `correct its first line${index}`);
  return names;
}
