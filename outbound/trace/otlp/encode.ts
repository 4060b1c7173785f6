/** Spans as an OTLP request. */
import type { Attributes, AttributeValue, Span, SpanSource } from './span.ts';
import { TraceRequest } from './wire.ts';

const ERROR_STATUS = 2;

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
