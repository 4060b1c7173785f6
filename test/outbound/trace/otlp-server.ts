/**
 * A server that takes traces as the collector, Langfuse, Weave and MLflow do: OTLP over HTTP in protobuf (opentelemetry-proto
 * 1.5), gzipped or not, ids of the right length, times in order; the newest span of an id counts. It also has Langfuse's
 * scores and data sets (its OpenAPI of August 2026), whose members it checks, and MLflow's experiments.
 */
import { createServer, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { z } from 'zod';

import { decodeTraces, type ReadSpan } from '../../../outbound/trace/otlp/decode.ts';

const Score = z.strictObject({
  id: z.string().max(255),
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  observationId: z.string().regex(/^[0-9a-f]{16}$/),
  name: z.string().min(1),
  value: z.number(),
  dataType: z.literal('NUMERIC'),
  comment: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  environment: z
    .string()
    .regex(/^(?!langfuse)[a-z0-9_-]+$/)
    .optional(),
});
const DatasetItem = z.strictObject({
  id: z.string().max(255),
  datasetName: z.string(),
  input: z.unknown(),
  metadata: z.unknown(),
});

export interface TakenRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly bytes: number;
}

export interface OtlpServer {
  readonly url: string;
  /** Newest spans by their ids. */
  readonly spans: Map<string, ReadSpan>;
  readonly scores: Map<string, z.output<typeof Score>>;
  readonly items: Map<string, z.output<typeof DatasetItem>>;
  readonly requests: TakenRequest[];
  /** Answers the next requests with these statuses, after it took them or before. */
  refuse(...statuses: number[]): void;
}

export async function startOtlpServer(): Promise<OtlpServer> {
  const taken: OtlpServer = {
    url: '',
    spans: new Map(),
    scores: new Map(),
    items: new Map(),
    requests: [],
    refuse: (...statuses) => void refusals.push(...statuses),
  };
  const refusals: number[] = [];
  const experiments = new Set<string>();
  const server = createServer((request, response) => {
    void (async () => {
      const body = await bytesOf(request);
      const { pathname, searchParams } = new URL(request.url!, 'http://host');
      taken.requests.push({ path: pathname, headers: request.headers, bytes: body.length });
      const status = refusals.shift();
      if (status !== undefined) return void response.writeHead(status, { 'retry-after': '3' }).end(echo(request));
      if (pathname.endsWith('/v1/traces')) {
        for (const span of readSpans(request, body)) taken.spans.set(span.spanId, span);
        return void response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
      }
      const json = body.length === 0 ? null : (JSON.parse(String(body)) as { name?: string });
      if (pathname.endsWith('/get-by-name')) {
        const name = searchParams.get('experiment_name')!;
        if (!experiments.has(name)) return void response.writeHead(404).end('{}');
        return void response.end(JSON.stringify({ experiment: { experiment_id: '17', name } }));
      }
      if (pathname.endsWith('/experiments/create')) experiments.add(json!.name!);
      if (pathname === '/api/public/scores') put(taken.scores, Score.parse(json));
      if (pathname === '/api/public/dataset-items') put(taken.items, DatasetItem.parse(json));
      return void response.end(JSON.stringify({ id: 'made', experiment_id: '17', name: json?.name }));
    })().catch((error: unknown) => response.writeHead(400).end(String(error)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  return { ...taken, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function put<T extends { id: string }>(map: Map<string, T>, value: T): void {
  map.set(value.id, value);
}

/** A server may repeat what it was sent, keys included. */
function echo({ headers }: IncomingMessage): string {
  return JSON.stringify({
    message: `refused ${headers.authorization ?? ''} ${String(headers['wandb-api-key'] ?? '')}`,
  });
}

function readSpans({ headers }: IncomingMessage, body: Buffer): ReadSpan[] {
  if (headers['content-type'] !== 'application/x-protobuf') throw new Error('not protobuf');
  const spans = decodeTraces(headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body);
  for (const { name, start, end } of spans)
    if (name === '' || start <= 0n || end < start) throw new Error(`a span ${name} from ${start} to ${end}`);
  return spans;
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
