/** Sources of scenarios: `scenarios: csv('questions.csv')`. A path is relative to the agent's file. */
import { badConfig, showValue, type TemperError } from '../../core/contract/failures.ts';
import type { Scenario } from '../../play/agent.ts';
import { csvSource, type CsvOptions } from '../../play/sources/csv.ts';
import { hubSource, type HubOptions } from '../../play/sources/hub.ts';
import { jsonLinesSource } from '../../play/sources/json-lines.ts';
import { parquetSource } from '../../play/sources/parquet.ts';
import type { MapOptions, RowSource } from '../../play/sources/row-source.ts';
import { sqliteSource } from '../../play/sources/sqlite.ts';
import { callable, isText, must, oneOf, takes, text } from '../options/options.ts';

const ROWS = { map: callable('pass (row, index) => ({ ...row, id: String(index) })').optional() };
const isCommit = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{40}$/.test(value);

const check = {
  jsonl: takes<MapOptions<unknown, Scenario>>('jsonl', ROWS),
  csv: takes<CsvOptions<unknown, Scenario>>('csv', { ...ROWS, delimiter: text("pass ';'").optional() }),
  parquet: takes<MapOptions<unknown, Scenario>>('parquet', ROWS),
  sqlite: takes<MapOptions<unknown, Scenario>>('sqlite', ROWS),
  hf: takes<HubOptions<unknown, Scenario>>('hf', {
    ...ROWS,
    config: text("pass { config: '…' }, or leave it out").optional(),
    split: text("pass { split: '…' }, or leave it out").optional(),
    revision: must('a commit of 40 hexadecimal digits', isCommit, 'copy it from the page of the data set').optional(),
    via: oneOf(['rows', 'parquet'], "pass 'parquet' for many rows").optional(),
  }),
};

/** Rows of a file of JSON lines. */
export function jsonl<R = Record<string, unknown>, S extends Scenario = Scenario>(
  file: string | URL,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  return jsonLinesSource(checkFile('jsonl', file), check.jsonl(options));
}

/** Rows of a CSV file, whose first line names the columns. Values are texts. */
export function csv<R = Record<string, string>, S extends Scenario = Scenario>(
  file: string | URL,
  options: CsvOptions<R, S> = {},
): RowSource<S> {
  return csvSource(checkFile('csv', file), check.csv(options));
}

/** Rows of a Parquet file. */
export function parquet<R = Record<string, unknown>, S extends Scenario = Scenario>(
  file: string | URL,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  return parquetSource(checkFile('parquet', file), check.parquet(options));
}

/** Rows of a query on a SQLite file, which is opened read-only: `sqlite('shop.db', 'select id, question from tasks')`. */
export function sqlite<R = Record<string, unknown>, S extends Scenario = Scenario>(
  file: string | URL,
  query: string,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  const checked = check.sqlite(options);
  if (typeof query !== 'string' || query.trim() === '')
    throw bad('sqlite must be given a query', query, "pass 'select id, question from tasks'");
  return sqliteSource(checkFile('sqlite', file), query, checked);
}

/**
 * Rows of a data set on the Hugging Face hub: `hf('openai/gsm8k', { config: 'main', split: 'train', map })`. A private or
 * gated one needs HF_TOKEN in the environment.
 */
export function hf<R = Record<string, unknown>, S extends Scenario = Scenario>(
  dataset: string,
  options: HubOptions<R, S> = {},
): RowSource<S> {
  const checked = check.hf(options);
  if (typeof dataset !== 'string' || !/^(?:[\w.-]+\/)?[\w.-]+$/.test(dataset))
    throw bad('hf must be given the name of a data set', dataset, "pass 'openai/gsm8k'");
  return hubSource(dataset, checked);
}

function checkFile(of: string, file: string | URL): string | URL {
  if (file instanceof URL ? file.protocol === 'file:' : isText(file)) return file;
  throw bad(`${of} must be given a path or a file URL`, file, `pass a path such as 'data/questions.${of}'`);
}

function bad(rule: string, found: unknown, remedy: string): TemperError {
  return badConfig(`${rule}, got ${showValue(found)}; ${remedy}`);
}
