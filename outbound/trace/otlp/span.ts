/** Spans as they are made and read here: ids in hexadecimal digits, attributes as a plain object. */

/** A whole number is an integer on the wire; `double` is for a number that is measured, and may be whole by chance. */
export type AttributeValue = string | boolean | number | { readonly double: number } | readonly string[];
export type Attributes = Readonly<Record<string, AttributeValue>>;

export const SPAN_KIND = { internal: 1, client: 3 } as const;

export interface SpanPlace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
}

export interface SpanEvent {
  readonly name: string;
  /** Nanoseconds since 1970. */
  readonly at: bigint;
  readonly attributes: Attributes;
}

export interface SpanLink extends SpanPlace {
  readonly attributes: Attributes;
}

export interface Span extends SpanPlace {
  /** Null for the root of its trace. */
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: (typeof SPAN_KIND)[keyof typeof SPAN_KIND];
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  readonly links: readonly SpanLink[];
  /** Message of a failure; null: the operation did not fail. */
  readonly error: string | null;
}

/** Maker of the spans. */
export interface SpanSource {
  readonly resource: Attributes;
  readonly scope: { readonly name: string; readonly version: string };
  /** The conventions that the attributes follow. */
  readonly schemaUrl: string;
}

export function nanoseconds(ms: number): bigint {
  return BigInt(Math.round(ms)) * 1_000_000n;
}
