/** One attempt as a trace: the agent, its calls of models in order, and the tools between them. */
import { formatAttemptId, formatGroupId } from '../../core/names/attempt-id.ts';
import type { AttemptRecord, CallRecord, HostedCallRecord } from '../../store/records/groups/trajectories.ts';
import { ERROR_TYPE, GEN_AI, SESSION } from './conventions.ts';
import { evaluationEvents, type AttemptVerdict } from './evaluation-events.ts';
import { rootOf, spanIdOf } from './ids.ts';
import { cutText, readToolCall, plainTextOf, toMessagesJson, type ToolCall } from './message-parts.ts';
import { hostedTurn, policyTurns, turnAttributes, type Turn } from './model-turns.ts';
import { SPAN_KIND, type Attributes, type Span, type SpanLink, type SpanPlace } from './otlp/span.ts';
import { timeOfAttempt, type AttemptTime, type SpanTime } from './span-times.ts';
import type { TracedGroup, TracedRun } from './traced.ts';
import { largest, smallest } from '../../core/numbers/statistics.ts';

export function nameAttempt({ branch, step, group }: TracedGroup, attempt: number): string {
  return formatAttemptId({ branch, step, group, attempt });
}

export function attemptRoot({ storeId, run }: TracedRun, group: TracedGroup, attempt: number): SpanPlace {
  return rootOf(storeId, run, nameAttempt(group, attempt));
}

/** Groups attempts at one scenario in viewers that know sessions. */
function sessionOf({ run }: TracedRun, group: TracedGroup): string {
  return `${run}/${formatGroupId(group)}`;
}

export interface SentAttempt {
  readonly verdict: AttemptVerdict;
  readonly sampledBy: SampledBy;
  /** Leads to the attempt's group in the trace of its step; null for an evaluation. */
  readonly link: SpanLink | null;
  /** Attributes of its root for one target alone. */
  readonly extra?: Attributes;
}

export function attemptSpans(
  run: TracedRun,
  group: TracedGroup,
  record: AttemptRecord,
  { verdict, sampledBy, link, extra = {} }: SentAttempt,
): Span[] {
  const turns = policyTurns(record.calls, group.policy ?? run.baseModel);
  const time = timeOfAttempt(group, record.attempt, record.calls.length);
  const place = attemptRoot(run, group, record.attempt);
  const shared = { ...placeAttributes(run, group, record), ...conversation(run, group, record) };
  const { failure } = record;
  const root: Span = {
    ...place,
    parentSpanId: null,
    name: `invoke_agent ${run.agent}`,
    kind: SPAN_KIND.internal,
    start: time.start,
    end: time.end,
    attributes: {
      ...shared,
      [GEN_AI.operation]: 'invoke_agent',
      [GEN_AI.agentVersion]: run.agentCodeSha256.slice(0, 12),
      'temper.tokens.input': sum(record.calls, ({ promptTokenIds }) => promptTokenIds.length),
      'temper.tokens.output': sum(record.calls, ({ tokenIds }) => tokenIds.length),
      ...outcomeAttributes(group, record, verdict),
      ...rootContent(run, turns),
      ...extra,
      'temper.sampled_by': sampledBy,
      'temper.time': time.of,
      ...(failure !== null && { [ERROR_TYPE]: failure.type }),
    },
    events: evaluationEvents(verdict, time.end, run.maxTextLength),
    links: link === null ? [] : [link],
    error: failure === null ? null : cutText(`${failure.type}: ${failure.message}`, 2000),
  };
  const of: Inner = { run, root: place, shared };
  const hosted = (record.hostedCalls ?? []).map((call, index) => hostedSpan(of, call, index, time));
  return [
    root,
    ...turns.flatMap((turn, index) => [turnSpan(of, turn, index, time), ...toolSpans(of, turns, index, time)]),
    ...hosted,
  ];
}

interface Inner {
  readonly run: TracedRun;
  readonly root: SpanPlace;
  readonly shared: Attributes;
}

function placeAttributes(
  run: TracedRun,
  group: TracedGroup,
  { attempt, scenario, scenarioId }: AttemptRecord,
): Attributes {
  const id = scenarioId ?? group.scenarioId;
  const index = scenario ?? group.scenario;
  return {
    [GEN_AI.agent]: run.agent,
    'temper.run': run.run,
    'temper.branch': group.branch,
    'temper.step': group.step,
    'temper.phase': group.group === null ? 'evaluation' : 'training',
    ...(group.group !== null && { 'temper.group': group.group }),
    'temper.attempt': attempt,
    'temper.attempt.id': nameAttempt(group, attempt),
    ...(id !== null && { 'temper.scenario.id': cutText(id, 500) }),
    ...(index !== null && { 'temper.scenario.index': index }),
  };
}

function conversation(run: TracedRun, group: TracedGroup, { attempt }: AttemptRecord): Attributes {
  return {
    [GEN_AI.conversation]: `${run.run}/${nameAttempt(group, attempt)}`,
    [SESSION]: sessionOf(run, group),
  };
}

function outcomeAttributes(group: TracedGroup, record: AttemptRecord, { reward }: AttemptVerdict): Attributes {
  const metrics = Object.entries(record.metrics).map(([name, value]) => [
    `temper.metric.${name}`,
    typeof value === 'boolean' ? value : { double: value },
  ]);
  return {
    ...(group.policy !== null && { 'temper.policy': group.policy }),
    ...(group.adapterSha256 !== null && { 'temper.adapter.sha256': group.adapterSha256 }),
    ...(reward !== null && { 'temper.reward': { double: reward } }),
    ...(group.use !== null && { 'temper.group.use': group.use }),
    'temper.truncated': record.truncated,
    ...(Object.fromEntries(metrics) as Attributes),
  };
}

/** The first request and the last answer, for lists of traces. */
function rootContent({ content, maxTextLength }: TracedRun, turns: readonly Turn[]): Attributes {
  const [first, last] = [turns[0], turns.at(-1)];
  if (!content || first === undefined || last === undefined) return {};
  const { tools = [] } = first.request;
  return {
    [GEN_AI.inputMessages]: toMessagesJson(first.request.messages, maxTextLength).json,
    [GEN_AI.outputMessages]: last.outputJson(maxTextLength),
    ...(tools.length > 0 && { [GEN_AI.toolDefinitions]: cutText(JSON.stringify(tools), 5 * maxTextLength) }),
  };
}

function turnSpan({ run, root, shared }: Inner, turn: Turn, index: number, times: AttemptTime): Span {
  const time = times.call(turn.index);
  return {
    traceId: root.traceId,
    spanId: spanIdOf(root.traceId, 'turn', index),
    parentSpanId: root.spanId,
    name: `chat ${turn.model}`,
    kind: SPAN_KIND.client,
    ...bounds(time),
    attributes: { ...shared, ...turnAttributes(turn, run), 'temper.time': time.of },
    events: [],
    links: [],
    error: turn.refusal,
  };
}

function hostedSpan(inner: Inner, call: HostedCallRecord, index: number, { start, of }: AttemptTime): Span {
  const time: SpanTime = { start, end: start, of: of === 'span' ? 'attempt' : of };
  const unknown = { call: () => time, after: () => time, ...time };
  const span = turnSpan(inner, hostedTurn(call, index), index, unknown);
  return { ...span, spanId: spanIdOf(inner.root.traceId, 'hosted', index) };
}

/** Tools that the answer of this turn called, with the results that a later request shows. */
function toolSpans({ run, root, shared }: Inner, turns: readonly Turn[], index: number, times: AttemptTime): Span[] {
  const turn = turns[index]!;
  const called = turn.choices.flatMap(({ message }) =>
    Array.isArray(message.tool_calls) ? message.tool_calls.map(readToolCall) : [],
  );
  return called.map((call, number) => {
    const result = resultOf(call, turns.slice(index + 1));
    const time =
      result === null ? { ...times.call(turn.index), start: times.call(turn.index).end } : times.after(turn.lastIndex);
    return {
      traceId: root.traceId,
      spanId: spanIdOf(root.traceId, 'tool', index, number),
      parentSpanId: root.spanId,
      name: `execute_tool ${call.name}`,
      kind: SPAN_KIND.internal,
      ...bounds(time),
      attributes: { ...shared, ...toolAttributes(call, result, run), 'temper.time': time.of },
      events: [],
      links: [],
      error: null,
    };
  });
}

function toolAttributes(call: ToolCall, result: string | null, { content, maxTextLength }: TracedRun): Attributes {
  return {
    [GEN_AI.operation]: 'execute_tool',
    [GEN_AI.tool]: call.name,
    [GEN_AI.toolType]: 'function',
    ...(call.id !== null && { [GEN_AI.toolCall]: call.id }),
    ...(content && { [GEN_AI.toolArguments]: cutText(call.arguments, maxTextLength) }),
    ...(content && result !== null && { [GEN_AI.toolResult]: cutText(result, maxTextLength) }),
    'temper.tool.answered': result !== null,
  };
}

/** Null if no later request of the attempt shows one. */
function resultOf({ id }: ToolCall, later: readonly Turn[]): string | null {
  if (id === null) return null;
  for (const { request } of later) {
    const answer = request.messages.find((message) => message['tool_call_id'] === id);
    if (answer !== undefined) return plainTextOf(answer.content);
  }
  return null;
}

function bounds({ start, end }: SpanTime): { start: bigint; end: bigint } {
  return { start, end };
}

function sum(calls: readonly CallRecord[], lengthOf: (call: CallRecord) => number): number {
  return calls.reduce((total, call) => total + lengthOf(call), 0);
}

/** Which attempts of a group are sent: a share of them by their ids, and always failures, the best and the worst. */

type SampledBy = 'share' | 'failure' | 'best' | 'worst';

interface Candidate {
  /** From 0 to before 1, by the attempt's id: see `shareOf`. */
  readonly draw: number;
  readonly reward: number | null;
}

/** Reasons by index; undefined for an attempt that is left out. Of equal rewards, the first attempt is taken. */
export function sampleAttempts(attempts: readonly Candidate[], share: number): (SampledBy | undefined)[] {
  const rewards = attempts.map(({ reward }) => reward).filter((reward) => reward !== null);
  const [highest, lowest] = [largest(rewards), smallest(rewards)];
  const best = attempts.findIndex(({ reward }) => reward === highest);
  const worst = attempts.findIndex(({ reward }) => reward === lowest);
  return attempts.map(({ draw, reward }, index) => {
    if (reward === null) return 'failure';
    if (index === best) return 'best';
    if (index === worst) return 'worst';
    return draw < share ? 'share' : undefined;
  });
}
