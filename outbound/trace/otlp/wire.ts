/**
 * The messages of OTLP's trace service (opentelemetry-proto 1.5, whose wire is stable) for protobufjs. OpenTelemetry's
 * own package for JavaScript writes such messages and does not read them.
 */
import protobuf from 'protobufjs/light.js';

type Field = readonly [id: number, type: string, rule?: 'repeated'];

const MESSAGES: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  ExportTraceServiceRequest: { resourceSpans: [1, 'ResourceSpans', 'repeated'] },
  ExportTraceServiceResponse: { partialSuccess: [1, 'ExportTracePartialSuccess'] },
  ExportTracePartialSuccess: { rejectedSpans: [1, 'int64'], errorMessage: [2, 'string'] },
  ResourceSpans: { resource: [1, 'Resource'], scopeSpans: [2, 'ScopeSpans', 'repeated'], schemaUrl: [3, 'string'] },
  Resource: { attributes: [1, 'KeyValue', 'repeated'], droppedAttributesCount: [2, 'uint32'] },
  ScopeSpans: { scope: [1, 'InstrumentationScope'], spans: [2, 'Span', 'repeated'], schemaUrl: [3, 'string'] },
  InstrumentationScope: { name: [1, 'string'], version: [2, 'string'], attributes: [3, 'KeyValue', 'repeated'] },
  Span: {
    traceId: [1, 'bytes'],
    spanId: [2, 'bytes'],
    traceState: [3, 'string'],
    parentSpanId: [4, 'bytes'],
    name: [5, 'string'],
    kind: [6, 'int32'],
    startTimeUnixNano: [7, 'fixed64'],
    endTimeUnixNano: [8, 'fixed64'],
    attributes: [9, 'KeyValue', 'repeated'],
    droppedAttributesCount: [10, 'uint32'],
    events: [11, 'Event', 'repeated'],
    droppedEventsCount: [12, 'uint32'],
    links: [13, 'Link', 'repeated'],
    droppedLinksCount: [14, 'uint32'],
    status: [15, 'Status'],
    flags: [16, 'fixed32'],
  },
  Event: { timeUnixNano: [1, 'fixed64'], name: [2, 'string'], attributes: [3, 'KeyValue', 'repeated'] },
  Link: {
    traceId: [1, 'bytes'],
    spanId: [2, 'bytes'],
    traceState: [3, 'string'],
    attributes: [4, 'KeyValue', 'repeated'],
  },
  Status: { message: [2, 'string'], code: [3, 'int32'] },
  KeyValue: { key: [1, 'string'], value: [2, 'AnyValue'] },
  AnyValue: {
    stringValue: [1, 'string'],
    boolValue: [2, 'bool'],
    intValue: [3, 'int64'],
    doubleValue: [4, 'double'],
    arrayValue: [5, 'ArrayValue'],
    kvlistValue: [6, 'KeyValueList'],
    bytesValue: [7, 'bytes'],
  },
  ArrayValue: { values: [1, 'AnyValue', 'repeated'] },
  KeyValueList: { values: [1, 'KeyValue', 'repeated'] },
};

/** Fields of which a message has one, even if its value is empty or zero. */
const ONE_OF: Readonly<Record<string, Record<string, { oneof: string[] }>>> = {
  AnyValue: { value: { oneof: Object.keys(MESSAGES['AnyValue']!) } },
};

const root = protobuf.Root.fromJSON({
  nested: Object.fromEntries(Object.entries(MESSAGES).map(([name, fields]) => [name, describe(name, fields)])),
});

function describe(name: string, fields: Readonly<Record<string, Field>>): protobuf.IType {
  const described = Object.entries(fields).map(([field, [id, type, rule]]) => [
    field,
    { id, type, ...(rule !== undefined && { rule }) },
  ]);
  return { fields: Object.fromEntries(described), ...(ONE_OF[name] && { oneofs: ONE_OF[name] }) };
}

export const TraceRequest = root.lookupType('ExportTraceServiceRequest');
export const TraceResponse = root.lookupType('ExportTraceServiceResponse');
