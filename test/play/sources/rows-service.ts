/**
 * A stand-in of the hub's dataset viewer, made from its documentation (https://huggingface.co/docs/dataset-viewer): a real
 * HTTP server with `/splits`, `/rows` and `/parquet`, and the files that the last one names.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export const REVISION = 'a'.repeat(40);

export interface ServedSplit {
  config: string;
  split: string;
  rows: Record<string, unknown>[];
  /** Cells of rows, by index, that the service has shortened. */
  truncated?: Record<number, string[]>;
  /** The split as Parquet files. */
  files?: Uint8Array[];
}

export interface Refusal {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

export interface Served {
  dataset: string;
  splits: ServedSplit[];
  revision: string | null;
  partial: boolean;
  /** Answers to the next requests, before anything else, in order. */
  refusals: Refusal[];
  /** Needed to read it. */
  token: string | null;
}

export interface RowsService {
  /** May be changed between requests. */
  readonly served: Served;
  readonly url: string;
  /** Paths with their queries. */
  readonly requests: string[];
  /** Environment of a process that uses it, with a cache of its own. */
  env(cache: string, token?: string): NodeJS.ProcessEnv;
  close(): Promise<void>;
}

export async function startRowsService(changes: Partial<Served>): Promise<RowsService> {
  const defaults = { dataset: 'owner/name', splits: [], revision: REVISION, partial: false, refusals: [], token: null };
  const served: Served = { ...defaults, ...changes };
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    answer(served, new URL(request.url ?? '', url()), request, response);
  });
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => closeServer(server));
  return {
    served,
    url: url(),
    requests,
    env: (cache, token) => ({ HF_ENDPOINT: url(), TEMPER_CACHE: cache, ...(token && { HF_TOKEN: token }) }),
    close: () => closeServer(server),
  };
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => void server.close(() => resolve()));
}

function answer(served: Served, url: URL, request: IncomingMessage, response: ServerResponse): void {
  const refusal = served.refusals.shift();
  if (refusal !== undefined) return send(response, refusal.status, refusal.body ?? '', refusal.headers);
  const isAllowed = served.token === null || request.headers.authorization === `Bearer ${served.token}`;
  const asked = url.searchParams.get('dataset') ?? served.dataset;
  if (isAllowed && asked === served.dataset) return answerAllowed(served, url, response);
  const error = 'The dataset does not exist, or is not accessible without authentication (private or gated).';
  fail(response, 401, error, 'ExternalUnauthenticatedError');
}

function answerAllowed(served: Served, url: URL, response: ServerResponse): void {
  if (url.pathname === '/splits') return json(served, response, { splits: splitsOf(served), pending: [], failed: [] });
  if (url.pathname === '/rows') return answerRows(served, url.searchParams, response);
  if (url.pathname === '/parquet')
    return json(served, response, { parquet_files: filesOf(served, url), ...common(served) });
  const [, config, split, index] = /^\/datasets\/.*\/(.*)\/(.*)\/(\d+)\.parquet$/.exec(url.pathname) ?? [];
  const file = served.splits.find((one) => one.config === config && one.split === split)?.files?.[Number(index)];
  if (file === undefined) return fail(response, 404, 'Entry not found', 'EntryNotFound');
  response.end(file);
}

const common = ({ partial }: Served) => ({ pending: [], failed: [], partial });

const splitsOf = ({ dataset, splits }: Served) => splits.map(({ config, split }) => ({ dataset, config, split }));

function filesOf({ dataset, splits }: Served, { origin }: URL) {
  return splits.flatMap(({ config, split, files = [] }) =>
    files.map((file, index) => {
      const filename = `${String(index).padStart(4, '0')}.parquet`;
      const url = `${origin}/datasets/${dataset}/resolve/refs%2Fconvert%2Fparquet/${config}/${split}/${filename}`;
      return { dataset, config, split, url, filename, size: file.length };
    }),
  );
}

function answerRows(served: Served, query: URLSearchParams, response: ServerResponse): void {
  const [offset, length] = [Number(query.get('offset')), Number(query.get('length'))];
  if (length > 100) return fail(response, 422, "Parameter 'length' must not be greater than 100", 'InvalidParameter');
  const found = served.splits.find(
    ({ config, split }) => config === query.get('config') && split === query.get('split'),
  );
  if (found === undefined) return fail(response, 404, 'The split does not exist.', 'SplitNotFoundError');
  const { rows, truncated = {} } = found;
  const page = rows.slice(offset, offset + length).map((row, index) => {
    const row_idx = offset + index;
    return { row_idx, row, truncated_cells: truncated[row_idx] ?? [] };
  });
  const features = Object.keys(rows[0] ?? {}).map((name, feature_idx) => ({ feature_idx, name, type: {} }));
  const { partial } = served;
  json(served, response, { features, rows: page, num_rows_total: rows.length, num_rows_per_page: 100, partial });
}

function json({ revision }: Served, response: ServerResponse, body: object): void {
  send(response, 200, JSON.stringify(body), revision === null ? {} : { 'X-Revision': revision });
}

function fail(response: ServerResponse, status: number, error: string, code: string): void {
  send(response, status, JSON.stringify({ error }), { 'X-Error-Code': code });
}

function send(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}
