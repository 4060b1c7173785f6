/** Rows of a data set on the Hugging Face hub, by its rows service or by its Parquet files, of one revision. */
import { z } from 'zod';

import type { HubDataset } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { HubCache } from './hub-cache.ts';
import type { Patience } from './ask-again.ts';
import { HubClient, type Answer } from './hub-client.ts';
import { readParquet } from './parquet.ts';
import { RowSource, type Identified, type MapOptions, type Row, type RowReading } from './row-source.ts';

export interface HubOptions<R, S> extends MapOptions<R, S> {
  /** Subset of the data set; needed if it has several, and none is called `default`. */
  config?: string;
  /** Default: `train`. */
  split?: string;
  /** Commit that the rows must be of, 40 hexadecimal digits; by default the newest that the service has. */
  revision?: string;
  /** `rows` asks for pages of 100 rows; `parquet` downloads whole files, which is faster for many. By default `rows`. */
  via?: 'rows' | 'parquet';
}

export function hubSource<R, S extends Identified>(
  dataset: string,
  { map, ...options }: HubOptions<R, S> = {},
  env: NodeJS.ProcessEnv = process.env,
): RowSource<S> {
  const locate = (): RowReading => {
    const reader = new HubReader(dataset, options, env);
    return {
      name: reader.name,
      unit: 'row',
      isTable: true,
      read: (patience) => reader.read(patience),
      origin: () => reader.origin,
    };
  };
  return new RowSource(locate, map);
}

const Splits = z.object({ splits: z.array(z.object({ config: z.string(), split: z.string() })) });

const Page = z.object({
  rows: z.array(
    z.object({
      row_idx: z.number(),
      row: z.record(z.string(), z.unknown()),
      truncated_cells: z.array(z.unknown()),
    }),
  ),
  num_rows_total: z.number(),
  partial: z.boolean().optional(),
});

const Files = z.object({
  parquet_files: z.array(z.object({ config: z.string(), split: z.string(), url: z.string(), size: z.number() })),
  partial: z.boolean().optional(),
});

const COMMIT = /^[0-9a-f]{40}$/;

/** The most that the service gives at once. */
const ROWS_AT_ONCE = 100;

type Options = Omit<HubOptions<never, Identified>, 'map'>;

class HubReader {
  readonly name: string;
  /** Set once rows have been read. */
  origin: HubDataset | undefined;
  readonly #dataset: string;
  readonly #options: Options;
  readonly #env: NodeJS.ProcessEnv;
  #client: HubClient;
  #revision: string | null;

  constructor(dataset: string, options: Options, env: NodeJS.ProcessEnv) {
    this.name = `${dataset}${options.config === undefined ? '' : `/${options.config}`}/${options.split ?? 'train'}`;
    this.#dataset = dataset;
    this.#options = options;
    this.#env = env;
    this.#client = new HubClient(env);
    this.#revision = options.revision ?? null;
  }

  async *read(patience: Patience): AsyncGenerator<Row> {
    this.#client = new HubClient(this.#env, patience);
    const place = { config: await this.#findConfig(), split: this.#options.split ?? 'train' };
    yield* this.#options.via === 'parquet' ? this.#readFiles(place) : this.#readPages(place);
  }

  /** The one that there is, or `default`. */
  async #findConfig(): Promise<string> {
    const { config } = this.#options;
    if (config !== undefined) return config;
    const answer = await this.#client.ask('splits', { dataset: this.#dataset }, this.name);
    const configs = [...new Set(this.#parse(Splits, answer.text).splits.map((split) => split.config))];
    const found = configs.length === 1 ? configs[0] : configs.find((name) => name === 'default');
    if (found !== undefined) return found;
    const known = configs.slice(0, 20).join(', ');
    throw badConfig(`${this.name} must name one of the configs ${known}; pass hf(…, { config })`);
  }

  async *#readPages(place: Place): AsyncGenerator<Row> {
    for (let offset = 0; ;) {
      const page = await this.#page(place, offset);
      for (const { row, row_idx, truncated_cells } of page.rows) {
        if (truncated_cells.length > 0) throw this.#truncated(row_idx + 1, truncated_cells);
        yield { value: row, number: row_idx + 1 };
      }
      offset += page.rows.length;
      if (page.rows.length === 0 || offset >= page.num_rows_total) return this.#end(page, offset);
    }
  }

  async #page(place: Place, offset: number): Promise<z.output<typeof Page>> {
    const name = `rows-${offset}.json`;
    const cached = await this.#cache(place)?.read(name);
    if (cached != null) {
      this.#note(place);
      return this.#parse(Page, cached);
    }
    const window = { offset: String(offset), length: String(ROWS_AT_ONCE) };
    const answer = await this.#client.ask('rows', { dataset: this.#dataset, ...place, ...window }, this.name);
    this.#checkRevision(answer, place);
    const page = this.#parse(Page, answer.text);
    await this.#cache(place)?.writePage(name, answer.text);
    return page;
  }

  async *#readFiles(place: Place): AsyncGenerator<Row> {
    const answer = await this.#client.ask('parquet', { dataset: this.#dataset }, this.name);
    this.#checkRevision(answer, place);
    const { parquet_files, partial } = this.#parse(Files, answer.text);
    const files = parquet_files.filter(({ config, split }) => config === place.config && split === place.split);
    if (files.length === 0) throw this.#noFiles(parquet_files);
    let rows = 0;
    for (const [index, { url, size }] of files.entries()) {
      const cache = this.#cache(place) ?? new HubCache([this.#dataset, url, String(size)], this.#env);
      const download = (save: Parameters<HubClient['download']>[2]) =>
        this.#client.download({ url, bytes: size }, this.name, save);
      const file = await cache.file(`${index}.parquet`, size, download);
      for await (const row of readParquet(file, rows)) {
        rows = row.number;
        yield row;
      }
    }
    this.#end({ partial }, rows);
  }

  /** Null while the revision is not known. */
  #cache({ config, split }: Place): HubCache | null {
    return this.#revision === null ? null : new HubCache([this.#dataset, this.#revision, config, split], this.#env);
  }

  /** All rows must be of one revision: the first answer's, or the one that was asked for. */
  #checkRevision(answer: Answer, place: Place): void {
    const { revision: pinned } = this.#options;
    const revision = COMMIT.test(answer.revision ?? '') ? answer.revision : null;
    const rule = `rows of ${this.name} must be of the revision ${this.#revision}, got ${revision ?? 'no revision'}`;
    if (pinned !== undefined && revision !== pinned)
      throw badConfig(
        `${rule}: the service has the newest one alone; pin that, or read a copy of the other by parquet(…)`,
      );
    if (this.#revision !== null && revision !== this.#revision)
      throw new TemperError('SourceUnavailable', `${rule}: it changed while it was read; run the command again`);
    this.#revision = revision;
    this.#note(place);
  }

  #note({ config, split }: Place): void {
    this.origin = { dataset: this.#dataset, config, split, revision: this.#revision };
  }

  #parse<T>(schema: z.ZodType<T>, text: string): T {
    try {
      return schema.parse(JSON.parse(text));
    } catch (cause) {
      const rule = `${this.name} must be answered with JSON of the dataset viewer, got ${text.slice(0, 80)}`;
      throw new TemperError('SourceUnavailable', `${rule}; check HF_ENDPOINT and proxies on the way`, { cause });
    }
  }

  #truncated(row: number, cells: readonly unknown[]): TemperError {
    const rule = `row ${row} of ${this.name} must be whole, but the service shortened ${cells.map(String).join(', ')}`;
    return badConfig(`${rule}; pass via: 'parquet', which reads whole files`);
  }

  #noFiles(files: readonly Place[]): TemperError {
    const known = [...new Set(files.map(({ config, split }) => `${config}/${split}`))].slice(0, 20).join(', ');
    return badConfig(
      `${this.name} must be one of the splits of ${this.#dataset}, which has ${known || 'none'}; correct config and split`,
    );
  }

  /** The service converts the beginning of large data sets alone. */
  #end({ partial = false }: { partial?: boolean | undefined }, rows: number): void {
    if (!partial) return;
    throw badConfig(
      `${this.name} has more rows than the ${rows} that the service has of it; read at most these, with --max-scenarios ${rows}`,
    );
  }
}

interface Place {
  readonly config: string;
  readonly split: string;
}
