/** Spans go out in requests of bounded size, compressed. What a server took is not sent again. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { TemperError } from '../../core/contract/failures.ts';
import { callHttp, type TargetAnswer } from '../../core/text/http.ts';
import type { TraceEndpoint } from './endpoint.ts';
import type { Span, SpanSource, Attributes, AttributeValue } from './otlp/span.ts';
import { TraceResponse, TraceRequest } from './otlp/wire.ts';

const compress = promisify(gzip);

/** Collectors take 4 MiB by default, and Langfuse 4.5 MB. */
const SPANS_AT_ONCE = 200;
const MOST_BYTES = 3_000_000;

/** Collects spans and sends them once there are many. The memory that they take is bounded by one attempt more. */
export class TraceSender {
  readonly #endpoint: TraceEndpoint;
  readonly #source: SpanSource;
  #spans: Span[] = [];

  constructor(endpoint: TraceEndpoint, source: SpanSource) {
    this.#endpoint = endpoint;
    this.#source = source;
  }

  async add(spans: readonly Span[]): Promise<void> {
    this.#spans.push(...spans);
    if (this.#spans.length >= SPANS_AT_ONCE) await this.flush();
  }

  async flush(): Promise<void> {
    const spans = this.#spans;
    this.#spans = [];
    if (spans.length > 0) await this.#send(spans);
  }

  async #send(spans: readonly Span[]): Promise<void> {
    const bytes = encodeTraces(spans, this.#source);
    if (bytes.length > MOST_BYTES && spans.length > 1) {
      const half = Math.ceil(spans.length / 2);
      await this.#send(spans.slice(0, half));
      return this.#send(spans.slice(half));
    }
    const { caller, url, headers } = this.#endpoint;
    const encoding = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' };
    const body = new Uint8Array(await compress(bytes, { level: 1 }));
    const answer = await callHttp(caller, { method: 'POST', url, headers: { ...headers, ...encoding }, body });
    refuseRejected(caller.system, answer);
  }
}

/** A server may take a request and leave out some of its spans; it says so in its answer. */
function refuseRejected(system: string, { bytes, headers }: TargetAnswer): void {
  if (bytes.length === 0 || headers.get('content-type')?.includes('application/x-protobuf') !== true) return;
  const { partialSuccess } = TraceResponse.toObject(TraceResponse.decode(bytes), { longs: Number }) as {
    partialSuccess?: { rejectedSpans?: number; errorMessage?: string };
  };
  const rejected = partialSuccess?.rejectedSpans ?? 0;
  if (rejected === 0) return;
  const said = (partialSuccess?.errorMessage ?? '').slice(0, 300);
  throw new TemperError(
    'TargetUnavailable',
    `${system} must take all spans, it left out ${rejected}: ${said}; check its limits`,
  );
}

const ERROR_STATUS = 2;

/** Spans as an OTLP request. */
export function encodeTraces(spans: readonly Span[], { resource, scope, schemaUrl }: SpanSource): Uint8Array {
  const scopeSpans = [{ scope: { ...scope }, spans: spans.map(toSpan), schemaUrl }];
  const request = { resourceSpans: [{ resource: { attributes: toKeyValues(resource) }, scopeSpans }] };
  return TraceRequest.encode(TraceRequest.fromObject(request)).finish();
}

function toSpan(span: Span): object {
  const { traceId, spanId, parentSpanId, name, kind, start, end, attributes, events, links, error } = span;
  return {
    traceId: Buffer.from(traceId, 'hex'),
    spanId: Buffer.from(spanId, 'hex'),
    ...(parentSpanId !== null && { parentSpanId: Buffer.from(parentSpanId, 'hex') }),
    name,
    kind,
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(end),
    attributes: toKeyValues(attributes),
    events: events.map(({ name: event, at, attributes: of }) => ({
      timeUnixNano: String(at),
      name: event,
      attributes: toKeyValues(of),
    })),
    links: links.map((link) => ({
      traceId: Buffer.from(link.traceId, 'hex'),
      spanId: Buffer.from(link.spanId, 'hex'),
      attributes: toKeyValues(link.attributes),
    })),
    status: error === null ? {} : { code: ERROR_STATUS, message: error },
  };
}

function toKeyValues(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: toAnyValue(value) }));
}

function toAnyValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: value } : { doubleValue: value };
  if ('double' in value) return { doubleValue: value.double };
  return { arrayValue: { values: value.map(toAnyValue) } };
}
