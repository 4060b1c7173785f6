/** `temper distill --from-otlp` and `--from-langfuse`; how libraries record calls: span-calls.test.ts. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';

import { readOtlpFile } from '../../../cli/distill/traces/read-otlp-file.ts';
import { encodeTraces } from '../../../outbound/trace/send-traces.ts';
import { SPAN_KIND, type Attributes, type Span } from '../../../outbound/trace/otlp/span.ts';
import { temporaryProject } from '../fixture-store.ts';
import { runCli } from '../run-cli.ts';

let project: string;
beforeEach(async () => {
  project = temporaryProject();
});

const SOURCE = { resource: {}, scope: { name: 'test', version: '1' }, schemaUrl: '' };
const ask = (content: string) => ({ role: 'user', content });
const say = (content: string) => ({ role: 'assistant', content });

/** A turn of a conversation, in a trace of its own. */
function turn(number: number, conversation: string, messages: object[], answer: string, score?: number): Span {
  const traceId = number.toString(16).padStart(32, '0');
  const evaluation = { 'gen_ai.evaluation.name': 'helpful', 'gen_ai.evaluation.score.value': { double: score ?? 0 } };
  return spanOf(traceId, number, {
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.conversation.id': conversation,
      'gen_ai.input.messages': JSON.stringify(messages),
      'gen_ai.output.messages': JSON.stringify(answer === '' ? [] : [say(answer)]),
    },
    events: score === undefined ? [] : [{ name: 'gen_ai.evaluation.result', at: 1n, attributes: evaluation }],
  });
}

function spanOf(traceId: string, number: number, span: { attributes: Attributes; events: Span['events'] }): Span {
  const spanId = number.toString(16).padStart(16, 'a');
  const [start, end] = [BigInt(number) * 1000n, BigInt(number) * 1000n + 1n];
  const made = { parentSpanId: null, name: 'chat m', kind: SPAN_KIND.client, links: [], error: null };
  return { traceId, spanId, start, end, ...made, ...span };
}

const SPANS = [
  turn(1, 'first', [ask('Hi')], 'Hello.', 0.25),
  turn(2, 'first', [ask('Hi'), say('Hello.'), ask('Bye')], 'So long.'),
  turn(3, 'second', [ask('Hm')], 'Hm?', 1),
  turn(4, 'third', [ask('What?')], ''),
  turn(5, 'fourth', [ask('Hi')], 'Hey.'),
  spanOf('f'.repeat(32), 6, { attributes: { 'gen_ai.operation.name': 'execute_tool' }, events: [] }),
];

const FIRST = [ask('Hi'), say('Hello.'), ask('Bye'), say('So long.')];

const distill = (...more: string[]) => runCli(project, ['distill', '--out', 'chats.jsonl', ...more]);
const lines = async (name: string) =>
  (await readFile(join(project, name), 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown);

test('a file of traces becomes chats and scenarios, and what is left out is counted', async () => {
  await writeFile(join(project, 'traces.pb'), encodeTraces(SPANS, SOURCE));
  const { exitCode, stdout } = await distill('--from-otlp', 'traces.pb', '--scenarios', 'openings.jsonl');
  expect({ exitCode, stdout: stdout.replaceAll(project, '…') }).toEqual({
    exitCode: 0,
    stdout: [
      '3 of 3 conversations in …/traces.pb: 3 examples in …/chats.jsonl',
      '2 scenarios in …/openings.jsonl',
      'note: 1 call left out: the answer was not recorded',
      'note: 1 span of agents, tools and other operations',
    ].join('\n'),
  });
  expect(await lines('chats.jsonl')).toEqual([
    { messages: FIRST, metadata: { conversation: 'first' } },
    { messages: [ask('Hm'), say('Hm?')], metadata: { conversation: 'second' } },
    { messages: [ask('Hi'), say('Hey.')], metadata: { conversation: 'fourth' } },
  ]);
  expect(await lines('openings.jsonl')).toEqual([
    { id: 'first', messages: [ask('Hi')] },
    { id: 'second', messages: [ask('Hm')] },
  ]);
});

test('the best by a score are taken, from lines of JSON, from messages with their length, and from gzip', async () => {
  const protobuf = encodeTraces(SPANS, SOURCE);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(protobuf.length);
  const spans = SPANS.map(({ traceId, spanId, name, attributes, events }) => {
    const happened = events.map((event) => ({ name: event.name, attributes: listed(event.attributes) }));
    return { traceId, spanId, name, attributes: listed(attributes), events: happened };
  });
  const json = spans.map((span) => ({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }));
  const written: Record<string, Uint8Array | string> = {
    'framed.pb': Buffer.concat([length, protobuf, length, protobuf]),
    'lines.json': `${json.map((line) => JSON.stringify(line)).join('\n')}\n`,
    'packed.pb.gz': gzipSync(protobuf),
  };
  for (const [name, bytes] of Object.entries(written)) {
    await writeFile(join(project, name), bytes);
    const out = `${name}.jsonl`;
    const words = `distill --from-otlp ${name} --score helpful --top 50% --out ${out}`.split(' ');
    const { stdout, stderr } = await runCli(project, words);
    expect(stderr).toBe('');
    expect(stdout).toContain('note: 1 conversation without a score named helpful left out');
    expect(await lines(out)).toEqual([
      { messages: [ask('Hm'), say('Hm?')], metadata: { conversation: 'second', reward: 1 } },
    ]);
  }
});

function listed(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { doubleValue: (value as { double: number }).double },
  }));
}

test('a file of JSON that is longer than a string can be is read by lines', async () => {
  const [path, span] = [join(project, 'lines.json'), { traceId: '1'.repeat(32), spanId: '2'.repeat(16) }];
  const line = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] });
  await writeFile(path, `\uFEFF${line}\n\n${line}`);
  expect(await readOtlpFile(path, 100)).toMatchObject([span, span]);
  await writeFile(path, `${line}\n${JSON.stringify({ resourceSpans: [] }, null, 1)}`);
  await expect(readOtlpFile(path, 100)).rejects.toThrow(/lines\.json could not be read in line 2: /);
});

test.each([
  [['--from-otlp', 'none.json'], /^--from-otlp must be a file that can be read, got .*none\.json \(ENOENT\)/],
  [['--from-otlp', 'bad.json'], /bad\.json could not be read as a whole: it has no resourceSpans/],
  [['--from-otlp', 'bad.txt'], /bad\.txt could not be read as a whole/],
  [['--from-otlp', 'zstd.pb'], /is compressed with zstd; run zstd -d on it first/],
  [['--from-otlp', 'tools.pb'], /tools\.pb must have conversations to take, it has no calls of models/],
  [['--from-otlp', 'good.pb', '--top', '50%'], /none of its 3 has a score of that name; pass --score NAME/],
  [['--from-otlp', 'good.pb', '--since', '2026-11-20'], /^--since has no effect without --from-langfuse/],
  [['demo', '--top', '50%', '--score', 'x'], /^--score has no effect without --from-otlp or --from-langfuse/],
  [['--from-otlp', 'good.pb', '--scenarios', 'chats.jsonl'], /^--out and --scenarios must be two files/],
  [['demo', '--from-langfuse'], /attempts must come from one place/],
  [['demo'], /^--top is missing; pass --top 25%/],
  [['--from-langfuse'], /LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, at least one is not set/],
])('%j is refused in one line', async (flags, said) => {
  await writeFile(join(project, 'bad.json'), '{"a": 1}');
  await writeFile(join(project, 'bad.txt'), 'hello');
  await writeFile(join(project, 'zstd.pb'), Buffer.from('28b52ffd00', 'hex'));
  await writeFile(join(project, 'tools.pb'), encodeTraces(SPANS.slice(5), SOURCE));
  await writeFile(join(project, 'good.pb'), encodeTraces(SPANS, SOURCE));
  const { exitCode, stderr } = await distill(...flags);
  expect(stderr.trim().split('\n')).toHaveLength(1);
  expect([exitCode, stderr.replace(/^temper: /, '')]).toEqual([2, expect.stringMatching(said)]);
});

test('neither file is written if one of them exists', async () => {
  await writeFile(join(project, 'traces.pb'), encodeTraces(SPANS, SOURCE));
  await writeFile(join(project, 'old.jsonl'), '');
  const { exitCode, stderr } = await distill('--from-otlp', 'traces.pb', '--scenarios', 'old.jsonl');
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--scenarios must be a new file')]);
  await expect(readFile(join(project, 'chats.jsonl'))).rejects.toThrow('ENOENT');
});

const KEYS = { LANGFUSE_PUBLIC_KEY: 'pk-lf-canary-1', LANGFUSE_SECRET_KEY: 'sk-lf-canary-2' };
const AUTHORIZATION = `Basic ${btoa('pk-lf-canary-1:sk-lf-canary-2')}`;

/** A page for each path and cursor. Refusals are answered first, and repeat the key as other servers may. */
async function startLangfuse(pages: Record<string, unknown>, refusals: number[] = []) {
  const asked: URL[] = [];
  const server = createServer(({ url, headers: { authorization } }, response) => {
    const place = new URL(url!, 'http://host');
    asked.push(place);
    const status = refusals.shift() ?? (authorization === AUTHORIZATION ? 200 : 401);
    const page = pages[`${place.pathname}?${place.searchParams.get('cursor') ?? ''}`];
    response
      .writeHead(status, { 'retry-after': '0.01' })
      .end(JSON.stringify(status === 200 ? page : { message: `not with ${authorization}` }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { env: { ...KEYS, LANGFUSE_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }, asked };
}

test('Langfuse’s recorded calls are read page by page, with scores of traces, calls and sessions', async () => {
  const generation = (id: string, more: object) => ({
    id,
    traceId: `t-${id}`,
    startTime: '2026-11-20T10:00:00Z',
    type: 'GENERATION',
    ...more,
  });
  const pages = {
    '/api/public/v2/observations?': {
      data: [generation('1', { input: JSON.stringify([ask('Hi')]), output: JSON.stringify(say('Hello.')) })],
      meta: { cursor: 'next' },
    },
    '/api/public/v2/observations?next': {
      data: [
        generation('2', { input: JSON.stringify({ messages: [ask('Hm')] }), output: 'Hm?', sessionId: 's' }),
        generation('3', { input: JSON.stringify([ask('Oh')]), output: 'No', level: 'ERROR' }),
      ],
      meta: {},
    },
    '/api/public/v3/scores?': {
      data: [
        { value: 0.5, subject: { kind: 'trace', id: 't-1' } },
        { value: true, subject: { kind: 'session', id: 's' } },
        { value: 'good', subject: { kind: 'trace', id: 't-1' } },
      ],
      meta: {},
    },
  };
  const { env, asked } = await startLangfuse(pages, [429, 503]);
  const words = 'distill --from-langfuse --since 2026-11-20 --most 3 --score ok --top 100% --out a.jsonl'.split(' ');
  const { stdout, stderr } = await runCli(project, words, { env });
  expect(stderr).toBe('');
  expect(stdout).toContain('note: 1 call left out: the call failed');
  expect(await lines('a.jsonl')).toEqual([
    { messages: [ask('Hm'), say('Hm?')], metadata: { conversation: 's', reward: 1 } },
    { messages: [ask('Hi'), say('Hello.')], metadata: { conversation: 't-1', reward: 0.5 } },
  ]);
  const { type, fromStartTime } = Object.fromEntries(asked[0]!.searchParams);
  const { name, fromTimestamp } = Object.fromEntries(asked.at(-1)!.searchParams);
  expect([type, fromStartTime, name, fromTimestamp]).toEqual([
    'GENERATION',
    '2026-11-20T00:00:00.000Z',
    'ok',
    '2026-11-20T10:00:00.000Z',
  ]);
  asked.length = 0;
  await runCli(project, ['distill', '--from-langfuse', '--most', '1', '--out', 'b.jsonl'], { env });
  expect(asked.map(({ pathname }) => pathname)).toEqual(['/api/public/v2/observations']);
});

const FIRST_PAGE = '/api/public/v2/observations';

test.each([
  [401, {}, 1, /answered 401: .*; check the key in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY/],
  [404, {}, 1, /answered 404: .*\); check LANGFUSE_BASE_URL and the network/],
  [503, {}, 6, /^temper: Langfuse is unavailable \(GET .* answered 503: .*\); check LANGFUSE_BASE_URL and the network/],
  [200, { [`${FIRST_PAGE}?`]: { data: [{}] } }, 1, /v2\/observations as its API describes it, its answer has another/],
])('what Langfuse answers with %i is said in one line without the key', async (status, pages, requests, said) => {
  const { env, asked } = await startLangfuse(
    pages,
    Array.from({ length: 10 }, () => status),
  );
  const { exitCode, stderr } = await runCli(project, ['distill', '--from-langfuse', '--out', 'a.jsonl'], { env });
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(said)]);
  expect(stderr.trim()).not.toMatch(/\n|canary/);
  expect(stderr).not.toContain(AUTHORIZATION.replace('Basic ', ''));
  expect(asked.map(({ pathname }) => pathname)).toEqual(Array.from({ length: requests }, () => FIRST_PAGE));
});
