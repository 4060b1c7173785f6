import { expect, test } from 'vitest';

import { SPAN_KIND, type Span } from '../../../outbound/trace/otlp/span.ts';
import { TraceResponse } from '../../../outbound/trace/otlp/wire.ts';
import { TraceSender } from '../../../outbound/trace/send-traces.ts';

const SPAN: Span = {
  traceId: '1'.repeat(32),
  spanId: '2'.repeat(16),
  parentSpanId: null,
  name: 'chat',
  kind: SPAN_KIND.client,
  start: 1n,
  end: 2n,
  attributes: {},
  events: [],
  links: [],
  error: null,
};

/** Sends one span to a collector that answers so. */
async function send(partialSuccess: object): Promise<void> {
  const bytes = TraceResponse.encode(TraceResponse.create({ partialSuccess })).finish();
  const answer = () => new Response(new Uint8Array(bytes), { headers: { 'content-type': 'application/x-protobuf' } });
  const caller = {
    system: 'the collector',
    keyVariable: null,
    key: null,
    fetch: () => Promise.resolve(answer()),
    signal: new AbortController().signal,
  };
  const source = { resource: {}, scope: { name: 'temper-rl', version: '1' }, schemaUrl: '' };
  const sender = new TraceSender({ caller, url: 'http://collector/v1/traces', headers: {}, resource: {} }, source);
  await sender.add([SPAN]);
  await sender.flush();
}

test('spans that a collector leaves out are not taken for sent, and its reason is told', async () => {
  await expect(send({ rejectedSpans: 1, errorMessage: 'too old' })).rejects.toMatchObject({
    type: 'TargetUnavailable',
    message: 'the collector must take all spans, it left out 1: too old; check its limits',
  });
});

test('a collector that takes all, with a warning, has taken them', () =>
  send({ rejectedSpans: 0, errorMessage: 'an attribute was cut' }));
