/**
 * OTLP against OpenTelemetry's own package for JavaScript: `opentelemetry-js.pb` and `.json` are what
 * `@opentelemetry/otlp-transformer` 0.223.1 makes of the two spans below. This package needs Node 22 in its newest
 * version, and reads nothing, so its bytes are here in its place.
 */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

import { decodeTraces, readTracesJson, type ReadSpan } from '../../../outbound/trace/otlp/decode.ts';
import { encodeTraces } from '../../../outbound/trace/send-traces.ts';
import { SPAN_KIND, type Span, type SpanSource } from '../../../outbound/trace/otlp/span.ts';
import { fieldsOf } from './protobuf.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const ROOT = { traceId: TRACE, spanId: 'b7ad6b7169203331' };

const SOURCE: SpanSource = {
  resource: { 'service.name': 'temper', 'wandb.entity': 'team' },
  scope: { name: 'temper-rl', version: '1.2.3' },
  schemaUrl: 'https://opentelemetry.io/schemas/1.41.0',
};

const SPANS: Span[] = [
  {
    ...ROOT,
    parentSpanId: null,
    name: 'invoke_agent support',
    kind: SPAN_KIND.internal,
    start: 1_764_236_000_123_000_001n,
    end: 1_764_236_009_000_000_005n,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'temper.step': 3,
      'temper.truncated': false,
      'temper.reward': { double: 0.25 },
      'gen_ai.response.finish_reasons': ['stop', 'length'],
      'temper.empty': '',
    },
    events: [
      {
        name: 'gen_ai.evaluation.result',
        at: 1_764_236_009_000_000_005n,
        attributes: { 'gen_ai.evaluation.name': 'reward', 'gen_ai.evaluation.score.value': { double: 0.25 } },
      },
    ],
    links: [{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), attributes: { 'temper.link': 'group' } }],
    error: 'AgentFailed: it gave up',
  },
  {
    traceId: TRACE,
    spanId: '00f067aa0ba902b7',
    parentSpanId: ROOT.spanId,
    name: 'chat demo@2',
    kind: SPAN_KIND.client,
    start: 1_764_236_001_000_000_000n,
    end: 1_764_236_002_000_000_000n,
    attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 2 ** 32 },
    events: [],
    links: [],
    error: null,
  },
];

const file = (name: string) => readFile(new URL(name, import.meta.url));

test('spans are read as OpenTelemetry’s own package writes them, in protobuf and in JSON', async () => {
  const theirs = decodeTraces(await file('opentelemetry-js.pb'));
  expect(theirs).toEqual(readTracesJson(JSON.parse(String(await file('opentelemetry-js.json')))));
  expect(theirs).toEqual(decodeTraces(encodeTraces(SPANS, SOURCE)));
  expect(theirs.map(({ name, parentSpanId, hasFailed }) => [name, parentSpanId, hasFailed])).toEqual([
    ['invoke_agent support', null, true],
    ['chat demo@2', ROOT.spanId, false],
  ]);
});

test('what is written has the same fields as what OpenTelemetry’s own package writes', async () => {
  const [theirs, ours] = [await file('opentelemetry-js.pb'), encodeTraces(SPANS, SOURCE)].map((bytes) =>
    fieldsOf(bytes),
  );
  // Their flags say that they were sampled; a status of zero and counts of what was dropped could be left out.
  const OPTIONAL = /\.(?:16|10|12|14):|\.13\.[56]:|\.11\.4:|\.15: |\.15\.3: 0|^1\.1\.2:/;
  const shown = (fields: string[]) => fields.filter((field) => !OPTIONAL.test(field)).toSorted();
  expect(shown(ours!)).toEqual(shown(theirs!));
});

test('an attribute named like a member of every object is an attribute', () => {
  const span: Span = {
    ...SPANS[1]!,
    attributes: JSON.parse('{"__proto__": "x", "constructor": "y"}') as Span['attributes'],
  };
  const [read] = decodeTraces(encodeTraces([span], SOURCE)) as [ReadSpan];
  expect(Object.entries(read.attributes)).toEqual([
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
});
