import { beforeEach, expect, test } from 'vitest';

import { TraceSettings } from '../../../core/contract/trace.ts';
import { verdictsOf } from '../../../outbound/trace/evaluation-events.ts';
import { sampleAttempts } from '../../../outbound/trace/attempt-spans.ts';
import type { TracedGroup } from '../../../outbound/trace/traced.ts';
import type { ReadSpan } from '../../../outbound/trace/otlp/decode.ts';
import { openTraceTarget } from '../../../outbound/trace/trace-target.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import type { Store } from '../../../store/store.ts';
import { startOtlpServer, type OtlpServer } from './otlp-server.ts';
import { COMMITTED, STARTED, stepRow, deliveryOf, writeStep } from './traced-run.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const KEYS = {
  LANGFUSE_PUBLIC_KEY: 'pk-lf-canary-1',
  LANGFUSE_SECRET_KEY: 'sk-lf-canary-2',
  WANDB_API_KEY: 'wandb-canary-3',
  MLFLOW_TRACKING_TOKEN: 'mlflow-canary-4',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=otlp%20canary-5',
};

let store: Store;
let server: OtlpServer;
beforeEach(async () => {
  store = await openStore(temporaryFolder());
  server = await startOtlpServer();
});

function open(settings: object, env: Record<string, string> = KEYS) {
  return openTraceTarget(TraceSettings.parse(settings), { store, env, fetch: globalThis.fetch, version: '1.2.3' });
}

const otlp = (options: object = {}) => open({ kind: 'otlp', url: `${server.url}/v1/traces`, share: 1, ...options });

const named = (name: string): ReadSpan[] => [...server.spans.values()].filter((span) => span.name === name);
const inTrace = ({ traceId }: ReadSpan) => [...server.spans.values()].filter((span) => span.traceId === traceId);
const ms = (nanoseconds: bigint) => Number(nanoseconds / 1_000_000n) - STARTED;

test('an evaluation may have any number of attempts', () => {
  const attempts = Array.from({ length: 200_000 }, (_, reward) => ({ draw: 1, reward, status: 'ok' }));
  expect(sampleAttempts(attempts, 0).filter((by) => by !== undefined)).toEqual(['worst', 'best']);
  const labels = verdictsOf({ attempts, judged: null } as unknown as TracedGroup).map(({ label }) => label);
  expect([0, 1, 199_998, 199_999].map((at) => labels[at])).toEqual(['worst', 'below mean', 'above mean', 'best']);
});

test('an attempt is a trace: the agent, its turns with what they said, the tool between them, and the reward', async () => {
  await writeStep(store, 1, [0.25, 0.75]);
  await otlp().deliver(await deliveryOf(store), [stepRow(1)]);
  const [, root] = named('invoke_agent support') as [ReadSpan, ReadSpan];
  const spans = inTrace(root).toSorted((a, b) => Number(a.start - b.start));
  expect(spans.map(({ name, start, end }) => [name, ms(start), ms(end)])).toEqual([
    ['invoke_agent support', 1000, 1500],
    ['chat pocket', 1100, 1200],
    ['execute_tool find_order', 1200, 1300],
    ['chat pocket', 1300, 1400],
  ]);
  expect(spans.every(({ parentSpanId }, index) => parentSpanId === (index === 0 ? null : root.spanId))).toBe(true);
  expect(root.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'support',
    'gen_ai.conversation.id': 'demo/0.1.0.1',
    'session.id': 'demo/0.1.0',
    'temper.scenario.id': 'order-7',
    'temper.adapter.sha256': 'c'.repeat(64),
    'temper.reward': 0.75,
    'temper.metric.isPolite': true,
    'temper.tokens.output': 6,
    'temper.sampled_by': 'best',
    'temper.time': 'span',
  });
  expect(root.events).toEqual([
    {
      name: 'gen_ai.evaluation.result',
      attributes: {
        'gen_ai.evaluation.name': 'reward',
        'gen_ai.evaluation.score.value': 0.75,
        'gen_ai.evaluation.score.label': 'best',
        'gen_ai.evaluation.explanation': 'It is worth 0.75.',
        'temper.judge': 'openai/gpt-5-mini',
      },
    },
    ...[['ruler_score', 0.75] as const, ['agent_reward', 0.5] as const].map(([name, value]) => ({
      name: 'gen_ai.evaluation.result',
      attributes: { 'gen_ai.evaluation.name': name, 'gen_ai.evaluation.score.value': value },
    })),
  ]);
  const [, , tool, last] = spans as [ReadSpan, ReadSpan, ReadSpan, ReadSpan];
  expect(tool.attributes).toMatchObject({
    'gen_ai.tool.name': 'find_order',
    'gen_ai.tool.call.id': 'c1',
    'gen_ai.tool.call.arguments': '{"id":7}',
    'gen_ai.tool.call.result': 'in Oslo',
  });
  expect(last.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.temperature': 1,
    'gen_ai.request.max_tokens': 64,
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 3,
    'gen_ai.usage.output_tokens': 3,
    'gen_ai.output.messages': JSON.stringify([
      { role: 'assistant', parts: [{ type: 'text', content: 'In Oslo.' }], finish_reason: 'stop' },
    ]),
  });
  expect(JSON.parse(last.attributes['gen_ai.input.messages'] as string)).toEqual([
    { role: 'user', parts: [{ type: 'text', content: 'Where is order 7? (1)' }] },
    { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'find_order', arguments: { id: 7 } }] },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'in Oslo' }] },
  ]);
});

test('a step is a trace that begins with its first group; what is not known of time is said', async () => {
  await writeStep(store, 1, [0.25, 0.75, null]);
  const delivery = await deliveryOf(store);
  await otlp().deliver(delivery, [stepRow(1)]);
  await otlp().end(delivery, 'finished');
  const [step] = named('step 1') as [ReadSpan];
  expect([step.start, step.end].map(ms)).toEqual([0, COMMITTED - STARTED]);
  expect(step.attributes).toMatchObject({ 'temper.metric.loss': 0.25, 'temper.reward': 0.5 });
  expect(inTrace(step).map(({ name }) => name)).toEqual(['step 1', 'group 0']);
  expect(named('group 0')[0]!.attributes).toMatchObject({ 'temper.attempts.sent': 3, 'temper.attempts.failed': 1 });
  expect(named('run demo')[0]!.attributes).toMatchObject({ 'temper.outcome': 'finished' });
  const [first, , failed] = named('invoke_agent support') as [ReadSpan, ReadSpan, ReadSpan];
  // The answer to its second call came from the journal.
  const unknown = inTrace(first).filter((span) => span.attributes['temper.time'] === 'attempt');
  expect(unknown.map(({ name, start, end }) => [name, ms(start), end - start])).toEqual([
    ['execute_tool find_order', 0, 0n],
    ['chat pocket', 0, 0n],
  ]);
  expect(failed.hasFailed).toBe(true);
  expect(failed.attributes).toMatchObject({ 'error.type': 'AgentFailed', 'temper.sampled_by': 'failure' });
  expect(failed.events).toEqual([]);
});

test('delivered twice, spans are the same ones; with another share, more of them', async () => {
  // So many that a share of them is neither all nor none, whatever names the run draws.
  const rewards = Array.from({ length: 80 }, (_, index) => (index === 7 ? null : index / 100));
  await writeStep(store, 1, rewards);
  const delivery = await deliveryOf(store);
  await otlp({ share: 0 }).deliver(delivery, [stepRow(1)]);
  const first = new Map(server.spans);
  const sampled = () => named('invoke_agent support').map(({ attributes }) => attributes['temper.sampled_by']);
  expect(sampled()).toEqual(['worst', 'failure', 'best']);
  await otlp({ share: 0 }).deliver(delivery, [stepRow(1)]);
  expect(new Map(server.spans)).toEqual(first);
  await otlp({ share: 0.5 }).deliver(delivery, [stepRow(1)]);
  const some = named('invoke_agent support').length;
  expect(some).toBeGreaterThan(3);
  expect(some).toBeLessThan(rewards.length);
  await otlp({ share: 0.5 }).deliver(delivery, [stepRow(1)]);
  expect(named('invoke_agent support')).toHaveLength(some);
});

test('without content, no word of a conversation leaves; long texts are cut, and say so', async () => {
  await writeStep(store, 1, [1, 0]);
  await otlp({ content: false }).deliver(await deliveryOf(store), [stepRow(1)]);
  const all = JSON.stringify([...server.spans.values()].map(({ attributes }) => attributes));
  expect(all).not.toMatch(/Oslo|order 7/);
  await writeStep(store, 2, [1, 0]);
  const { cutText, toMessagesJson } = await import('../../../outbound/trace/message-parts.ts');
  expect(cutText('x'.repeat(150), 100)).toBe(`${'x'.repeat(100)} … (50 more characters)`);
  const long = Array.from({ length: 20 }, (_, index) => ({ role: 'user', content: `${index} ${'y'.repeat(80)}` }));
  const { json, leftOut } = toMessagesJson(long, 100);
  expect([JSON.parse(json)[0].parts[0].content.slice(0, 2), leftOut]).toEqual(['0 ', 20 - JSON.parse(json).length]);
  expect(json.length).toBeLessThan(600);
});

test.each([
  [
    'langfuse',
    {},
    '/api/public/otel/v1/traces',
    { authorization: `Basic ${btoa('pk-lf-canary-1:sk-lf-canary-2')}` },
    {},
  ],
  [
    'weave',
    { entity: 'team' },
    '/agents/otel/v1/traces',
    { 'wandb-api-key': 'wandb-canary-3' },
    { 'wandb.entity': 'team', 'wandb.project': 'support' },
  ],
  ['mlflow-traces', {}, '/v1/traces', { authorization: 'Bearer mlflow-canary-4', 'x-mlflow-experiment-id': '17' }, {}],
  [
    'otlp',
    {},
    '/v1/traces',
    { 'x-api-key': 'otlp canary-5' },
    { 'service.name': 'temper', 'service.version': '1.2.3' },
  ],
])(
  '%s is delivered to at its own address, with its own headers and resource',
  async (kind, options, path, headers, resource) => {
    await writeStep(store, 1, [1, 0]);
    const url = kind === 'otlp' ? `${server.url}/v1/traces` : server.url;
    const target = open({ kind, url, ...options });
    const memory = await target.begin(await deliveryOf(store));
    await target.deliver(await deliveryOf(store, memory), [stepRow(1)]);
    const [request] = server.requests.filter((each) => each.path.endsWith('/traces'));
    expect(request).toMatchObject({ path, headers });
    expect([...server.spans.values()][0]!.resource).toMatchObject(resource);
  },
);

test('Langfuse gets rewards as scores, once each', async () => {
  await writeStep(store, 1, [1, 0, null]);
  const target = open({ kind: 'langfuse', url: server.url, environment: 'training' });
  const delivery = await deliveryOf(store);
  for (const _ of [1, 2]) await target.deliver(delivery, [stepRow(1)]);
  const [best] = named('invoke_agent support') as [ReadSpan];
  const scores = [...server.scores.values()];
  expect(scores).toHaveLength(6);
  expect(scores.find(({ traceId, name }) => traceId === best.traceId && name === 'reward')).toMatchObject({
    observationId: best.spanId,
    value: 1,
    comment: 'It is worth 1.',
    environment: 'training',
    metadata: { run: 'demo', step: 1, attempt: '0.1.0.0', judge: 'openai/gpt-5-mini', label: 'best' },
  });
});

test.each([
  [429, 'TargetUnavailable'],
  [503, 'TargetUnavailable'],
  [401, 'BadConfig'],
  [404, 'DeploymentFailed'],
])('of a server that answers %i the failure is %s, and no key is shown', async (status, type) => {
  await writeStep(store, 1, [1, 0]);
  for (const kind of ['langfuse', 'weave', 'mlflow-traces', 'otlp']) {
    server.refuse(status);
    const target = open({ kind, url: server.url, ...(kind === 'weave' && { entity: 'team' }) });
    const error = await target
      .deliver(await deliveryOf(store), [stepRow(1)])
      .catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ type });
    expect(String(error)).not.toMatch(/canary/);
    expect(String(error)).toContain(String(status));
  }
});

test('a key that is missing is named', async () => {
  const delivery = await deliveryOf(store);
  for (const [settings, variable] of [
    [{ kind: 'langfuse' }, 'LANGFUSE_SECRET_KEY'],
    [{ kind: 'weave', entity: 'team' }, 'WANDB_API_KEY'],
  ] as const) {
    const begun = open({ ...settings, url: server.url }, {}).begin(delivery);
    await expect(begun).rejects.toMatchObject({
      type: 'BadConfig',
      message: expect.stringContaining(variable),
    });
  }
  const nobodys = open({ kind: 'weave', url: server.url }).begin(delivery);
  await expect(nobodys).rejects.toThrow('pass weaveTraces({ entity }), or set WANDB_ENTITY');
});
