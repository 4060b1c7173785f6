/** Sources of scenarios: `scenarios: csv('questions.csv')`. A path is relative to the agent's file. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { Scenario } from '../../play/agent.ts';
import { csvSource, type CsvOptions } from '../../play/sources/csv.ts';
import { hubSource, type HubOptions } from '../../play/sources/hub.ts';
import { jsonLinesSource } from '../../play/sources/json-lines.ts';
import { parquetSource } from '../../play/sources/parquet.ts';
import type { MapOptions, RowSource } from '../../play/sources/row-source.ts';
import { sqliteSource } from '../../play/sources/sqlite.ts';
import { checkOptions } from '../options/check-options.ts';

/** Rows of a file of JSON lines. */
export function jsonl<R = Record<string, unknown>, S extends Scenario = Scenario>(
  file: string | URL,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  const { map } = checkOptions('jsonl', options);
  return jsonLinesSource(checkFile('jsonl', file), checkMap('jsonl', map));
}

/** Rows of a CSV file, whose first line names the columns. Values are texts. */
export function csv<R = Record<string, string>, S extends Scenario = Scenario>(
  file: string | URL,
  options: CsvOptions<R, S> = {},
): RowSource<S> {
  const { map, delimiter } = checkOptions('csv', options);
  if (delimiter !== undefined && (typeof delimiter !== 'string' || delimiter === ''))
    throw bad('delimiter of csv must be a text', delimiter, "pass ';'");
  return csvSource(checkFile('csv', file), {
    ...checkMap('csv', map),
    ...(delimiter === undefined ? {} : { delimiter }),
  });
}

/** Rows of a Parquet file. */
export function parquet<R = Record<string, unknown>, S extends Scenario = Scenario>(
  file: string | URL,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  const { map } = checkOptions('parquet', options);
  return parquetSource(checkFile('parquet', file), checkMap('parquet', map));
}

/** Rows of a query on a SQLite file, which is opened read-only: `sqlite('shop.db', 'select id, question from tasks')`. */
export function sqlite<R = Record<string, unknown>, S extends Scenario = Scenario>(
  file: string | URL,
  query: string,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  const { map } = checkOptions('sqlite', options);
  if (typeof query !== 'string' || query.trim() === '')
    throw bad('sqlite must be given a query', query, "pass 'select id, question from tasks'");
  return sqliteSource(checkFile('sqlite', file), query, checkMap('sqlite', map));
}

/**
 * Rows of a data set on the Hugging Face hub: `hf('openai/gsm8k', { config: 'main', split: 'train', map })`. A private or
 * gated one needs HF_TOKEN in the environment.
 */
export function hf<R = Record<string, unknown>, S extends Scenario = Scenario>(
  dataset: string,
  options: HubOptions<R, S> = {},
): RowSource<S> {
  const { map, config, split, revision, via } = checkOptions('hf', options);
  if (typeof dataset !== 'string' || !/^(?:[\w.-]+\/)?[\w.-]+$/.test(dataset))
    throw bad('hf must be given the name of a data set', dataset, "pass 'openai/gsm8k'");
  return hubSource(dataset, { ...checkHubOptions({ config, split, revision, via }), ...checkMap('hf', map) });
}

type Place = Omit<HubOptions<never, Scenario>, 'map'>;

function checkHubOptions({ config, split, revision, via }: { [K in keyof Place]: Place[K] | undefined }): Place {
  for (const [name, value] of Object.entries({ config, split }))
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      throw bad(`${name} of hf must be a text`, value, `pass { ${name}: '…' }, or leave it out`);
  if (revision !== undefined && !/^[0-9a-f]{40}$/.test(revision))
    throw bad(
      'revision of hf must be a commit of 40 hexadecimal digits',
      revision,
      'copy it from the page of the data set',
    );
  if (![undefined, 'rows', 'parquet'].includes(via))
    throw bad("via of hf must be 'rows' or 'parquet'", via, "pass 'parquet' for many rows");
  const given = Object.entries({ config, split, revision, via }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given);
}

function checkFile(of: string, file: string | URL): string | URL {
  if (file instanceof URL ? file.protocol === 'file:' : typeof file === 'string' && file !== '') return file;
  throw bad(`${of} must be given a path or a file URL`, file, `pass a path such as 'data/questions.${of}'`);
}

function checkMap<R, S>(of: string, map: MapOptions<R, S>['map']): MapOptions<R, S> {
  if (map === undefined) return {};
  if (typeof map === 'function') return { map };
  throw bad(`map of ${of} must be a function`, map, 'pass (row, index) => ({ ...row, id: String(index) })');
}

function bad(rule: string, found: unknown, remedy: string): TemperError {
  const shown = (JSON.stringify(found) ?? String(found)).slice(0, 80);
  return badConfig(`${rule}, got ${shown}; ${remedy}`);
}
