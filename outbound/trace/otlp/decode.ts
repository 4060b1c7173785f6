/** Spans of OTLP as others sent them: protobuf or JSON, as the collector's file exporter and SDKs write them. */
import { TraceRequest } from './wire.ts';

/** A value of an attribute as plain JSON. */
export type PlainValue = string | number | boolean | null | PlainValue[] | { [key: string]: PlainValue };
export type PlainAttributes = Readonly<Record<string, PlainValue>>;

export interface ReadEvent {
  readonly name: string;
  readonly attributes: PlainAttributes;
}

export interface ReadSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Null for a root. */
  readonly parentSpanId: string | null;
  readonly name: string;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: PlainAttributes;
  readonly events: readonly ReadEvent[];
  readonly hasFailed: boolean;
  readonly resource: PlainAttributes;
  readonly scope: string;
}

/** Spans of one request or one line. Throws an Error for what is no OTLP trace. */
export function decodeTraces(bytes: Uint8Array): ReadSpan[] {
  const message = TraceRequest.decode(bytes);
  return readRequest(TraceRequest.toObject(message, { longs: String, bytes: Array, arrays: true }));
}

/** A list of requests, one request, or the spans' resource alone, as different exporters write JSON. */
export function readTracesJson(value: unknown): ReadSpan[] {
  if (Array.isArray(value)) return value.flatMap(readTracesJson);
  if (typeof value === 'object' && value !== null && 'resourceSpans' in value) return readRequest(value);
  throw new Error('it has no resourceSpans');
}

type Json = Readonly<Record<string, unknown>>;

function readRequest(request: object): ReadSpan[] {
  return listOf(request, 'resourceSpans').flatMap((resourceSpans) => {
    const resource = attributesOf(asObject(resourceSpans['resource']));
    // Their name before OTLP 0.19.
    const scopes = [...listOf(resourceSpans, 'scopeSpans'), ...listOf(resourceSpans, 'instrumentationLibrarySpans')];
    return scopes.flatMap((scopeSpans) => {
      const scope = textOf(asObject(scopeSpans['scope'])['name']);
      return listOf(scopeSpans, 'spans').map((span) => readSpan(span, resource, scope));
    });
  });
}

function readSpan(span: Json, resource: PlainAttributes, scope: string): ReadSpan {
  const [traceId, spanId] = [idOf(span['traceId']), idOf(span['spanId'])];
  if (!/^[0-9a-f]{32}$/.test(traceId) || !/^[0-9a-f]{16}$/.test(spanId))
    throw new Error('a span must have ids of 32 and 16 hexadecimal digits');
  const parent = idOf(span['parentSpanId']);
  return {
    traceId,
    spanId,
    parentSpanId: /^0*$/.test(parent) ? null : parent,
    name: textOf(span['name']),
    start: integerOf(span['startTimeUnixNano']),
    end: integerOf(span['endTimeUnixNano']),
    attributes: attributesOf(span),
    events: listOf(span, 'events').map((event) => ({ name: textOf(event['name']), attributes: attributesOf(event) })),
    hasFailed: isError(asObject(span['status'])['code']),
    resource,
    scope,
  };
}

/** JSON may have the name of the code instead of its number. */
function isError(code: unknown): boolean {
  return code === 2 || code === 'STATUS_CODE_ERROR';
}

/** Bytes in protobuf; hexadecimal digits in JSON, and base64 where a generic converter wrote it. */
function idOf(id: unknown): string {
  if (Array.isArray(id) || id instanceof Uint8Array) return Buffer.from(id as number[]).toString('hex');
  if (typeof id !== 'string' || /^[0-9a-fA-F]*$/.test(id)) return textOf(id).toLowerCase();
  return Buffer.from(id, 'base64').toString('hex');
}

function integerOf(value: unknown): bigint {
  return (typeof value === 'string' && /^\d+$/.test(value)) || Number.isSafeInteger(value)
    ? BigInt(value as string)
    : 0n;
}

function attributesOf(holder: Json): PlainAttributes {
  // Without a prototype: a key may be named like a member of Object.
  const attributes: Record<string, PlainValue> = Object.create(null) as Record<string, PlainValue>;
  for (const { key, value } of listOf(holder, 'attributes') as { key?: unknown; value?: unknown }[])
    attributes[textOf(key)] = plainOf(value);
  return attributes;
}

function plainOf(value: unknown): PlainValue {
  const any = asObject(value);
  if (typeof any['stringValue'] === 'string') return any['stringValue'];
  if (typeof any['boolValue'] === 'boolean') return any['boolValue'];
  if (any['intValue'] !== undefined && any['intValue'] !== null) return exactInteger(any['intValue']);
  if (any['doubleValue'] !== undefined && any['doubleValue'] !== null) return Number(any['doubleValue']);
  if (any['arrayValue'] !== undefined) return listOf(asObject(any['arrayValue']), 'values').map(plainOf);
  if (any['kvlistValue'] === undefined) return null;
  const members = listOf(asObject(any['kvlistValue']), 'values') as { key?: unknown; value?: unknown }[];
  return Object.fromEntries(members.map((member) => [textOf(member.key), plainOf(member.value)]));
}

/** Beyond 2^53, its digits: a number would be another one. */
function exactInteger(value: unknown): number | string {
  return Number.isSafeInteger(Number(value)) || typeof value !== 'string' ? Number(value) : value;
}

function listOf(holder: object, name: string): Json[] {
  const list = (holder as Json)[name];
  return Array.isArray(list) ? list.map(asObject) : [];
}

function asObject(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
