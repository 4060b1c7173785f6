/**
 * Calls of models in spans, in the conventions that libraries follow: OpenTelemetry's for generative AI (attributes, and
 * the events of its earlier versions), OpenInference, OpenLLMetry, the AI SDK's and Langfuse's own.
 */
import type { PlainAttributes, PlainValue, ReadSpan } from '../../../outbound/trace/otlp/decode.ts';
import type { ChatMessage } from '../../../store/records/groups/trajectories.ts';
import {
  checkEnds,
  membersIn,
  maybeJson,
  readAnswers,
  readMessage,
  readChat,
  readTools,
  Unreadable,
} from './chat-messages.ts';

export interface TracedCall {
  readonly messages: readonly ChatMessage[];
  readonly tools: object[] | null;
  /** One for each choice. */
  readonly answers: readonly ChatMessage[];
}

/** Null for a span of something else; throws `Unreadable` for a call that is no example. */
export function readCall(span: ReadSpan): TracedCall | null {
  if (!isModelCall(span)) return null;
  if (span.attributes['temper.phase'] === 'evaluation') throw new Unreadable('it is of an evaluation by Temper');
  if (span.hasFailed) throw new Unreadable('the call failed');
  const call = CONVENTIONS.reduce<TracedCall | null>((found, read) => found ?? read(span), null);
  if (call === null || call.messages.length === 0) throw new Unreadable('the prompt was not recorded');
  if (call.answers.length === 0) throw new Unreadable('the answer was not recorded');
  checkEnds(endsOf(span));
  return call;
}

const CALLS = new Set(['chat', 'generate_content', 'text_completion']);

function isModelCall({ attributes }: ReadSpan): boolean {
  const { 'gen_ai.operation.name': operation, 'ai.operationId': operationId } = attributes;
  if (typeof operation === 'string') return CALLS.has(operation);
  return (
    attributes['openinference.span.kind'] === 'LLM' ||
    attributes['langfuse.observation.type'] === 'generation' ||
    (typeof operationId === 'string' && /\.do(?:Generate|Stream)$/.test(operationId)) ||
    typeof attributes['llm.request.type'] === 'string' ||
    typeof attributes['gen_ai.request.model'] === 'string'
  );
}

type Convention = (span: ReadSpan) => TracedCall | null;

const CONVENTIONS: readonly Convention[] = [
  ofGenAi,
  ofOperationDetails,
  ofMessageEvents,
  ofContentEvents,
  ofLangfuse,
  ofOpenInference,
  ofOpenLlmetry,
  ofAiSdk,
];

function ofGenAi({ attributes }: Pick<ReadSpan, 'attributes'>): TracedCall | null {
  const input = attributes['gen_ai.input.messages'];
  if (input === undefined) return null;
  const instructions = attributes['gen_ai.system_instructions'];
  const system = instructions === undefined ? [] : readMessage({ role: 'system', parts: instructions }, 'system');
  return {
    messages: [...system, ...readChat(input)],
    tools: readTools(attributes['gen_ai.tool.definitions']),
    answers: attributes['gen_ai.output.messages'] === '[]' ? [] : readAnswers(attributes['gen_ai.output.messages']),
  };
}

function ofOperationDetails({ events }: ReadSpan): TracedCall | null {
  const details = events.find(({ name }) => name === 'gen_ai.client.inference.operation.details');
  return details === undefined ? null : ofGenAi(details);
}

const MESSAGE_EVENT = /^gen_ai\.(system|user|assistant|tool)\.message$/;

/** An event for each message, as conventions before 1.37 have it. */
function ofMessageEvents({ events, attributes }: ReadSpan): TracedCall | null {
  const asked = events.flatMap((event) => {
    const [, role] = MESSAGE_EVENT.exec(event.name) ?? [];
    return role === undefined ? [] : readMessage({ role, ...bodyOf(event.attributes) }, role);
  });
  if (asked.length === 0) return null;
  const answers = events
    .filter(({ name }) => name === 'gen_ai.choice')
    .flatMap((event) => {
      const body = bodyOf(event.attributes);
      return readMessage(body['message'] ?? body, 'assistant');
    });
  return { messages: asked, tools: readTools(attributes['gen_ai.tool.definitions']), answers };
}

/** Members are attributes, or JSON in one of them. */
function bodyOf(attributes: PlainAttributes): Record<string, unknown> {
  const { id, ...body } = { ...attributes, ...membersIn(maybeJson(attributes['gen_ai.event.content'])) };
  return id === undefined ? body : { ...body, tool_call_id: id };
}

function ofContentEvents({ events }: ReadSpan): TracedCall | null {
  const prompt = events.find(({ name }) => name === 'gen_ai.content.prompt')?.attributes['gen_ai.prompt'];
  const completion = events.find(({ name }) => name === 'gen_ai.content.completion')?.attributes['gen_ai.completion'];
  if (prompt === undefined) return null;
  return { messages: readChat(prompt), tools: null, answers: readAnswers(completion ?? '') };
}

function ofLangfuse({ attributes }: ReadSpan): TracedCall | null {
  const input = maybeJson(attributes['langfuse.observation.input']);
  if (input === undefined || input === null) return null;
  return {
    messages: readChat(attributes['langfuse.observation.input']),
    tools: readTools(membersIn(input)['tools']),
    answers: readAnswers(attributes['langfuse.observation.output']),
  };
}

function ofOpenInference({ attributes }: ReadSpan): TracedCall | null {
  const { llm } = nested(attributes, /^llm\.(?:input_messages|output_messages|tools)\./);
  const input = listed(membersIn(llm)['input_messages']);
  if (input.length === 0) return null;
  const messageOf = (entry: unknown) => withLists(membersIn(membersIn(entry)['message']));
  return {
    messages: input.flatMap((entry) => readMessage(messageOf(entry), 'user')),
    tools: readTools(listed(membersIn(llm)['tools']).map((tool) => membersIn(membersIn(tool)['tool'])['json_schema'])),
    answers: listed(membersIn(llm)['output_messages']).flatMap((entry) => readMessage(messageOf(entry), 'assistant')),
  };
}

function ofOpenLlmetry({ attributes }: ReadSpan): TracedCall | null {
  const tree = nested(attributes, /^(?:gen_ai\.(?:prompt|completion)\.\d|llm\.request\.functions\.\d)/);
  const genAi = membersIn(tree['gen_ai']);
  const input = listed(genAi['prompt']);
  if (input.length === 0) return null;
  return {
    messages: input.flatMap((entry) => readMessage(withParts(withLists(membersIn(entry))), 'user')),
    tools: readTools(listed(membersIn(membersIn(tree['llm'])['request'])['functions'])),
    answers: listed(genAi['completion']).flatMap((entry) => readMessage(withLists(membersIn(entry)), 'assistant')),
  };
}

function ofAiSdk({ attributes }: ReadSpan): TracedCall | null {
  const input = attributes['ai.prompt.messages'];
  if (input === undefined) return null;
  const content = attributes['ai.response.text'] ?? attributes['ai.response.object'] ?? '';
  const calls = attributes['ai.response.toolCalls'];
  const isEmpty = content === '' && calls === undefined;
  const answer = { role: 'assistant', content: [{ type: 'text', text: content }], tool_calls: calls };
  return {
    messages: readChat(input),
    tools: readTools(attributes['ai.prompt.tools']),
    answers: isEmpty ? [] : readMessage(answer, 'assistant'),
  };
}

/** Where conventions say why a model stopped, besides its messages. */
function endsOf({ attributes, events }: ReadSpan): unknown[] {
  const { 'gen_ai.response.finish_reasons': finish_reasons, 'ai.response.finishReason': finishReason } = attributes;
  const completions = Object.entries(attributes).filter(([name]) => COMPLETION_END.test(name));
  // OpenInference keeps the whole answer of the server.
  const whole = membersIn(maybeJson(attributes['output.value']));
  return [
    { finish_reasons, finishReason },
    ...completions.map(([, finish_reason]) => ({ finish_reason })),
    ...events.flatMap((event) => [event.attributes, bodyOf(event.attributes)]),
    ...listed(whole['choices']),
    whole,
  ];
}

const COMPLETION_END = /^gen_ai\.completion\.\d+\.finish_reason$/;

type Tree = Record<string, unknown>;

/** `a.0.b: x` as `{ a: { 0: { b: x } } }`. */
function nested(attributes: PlainAttributes, pattern: RegExp): Tree {
  const root = Object.create(null) as Tree;
  for (const [key, value] of Object.entries(attributes)) if (pattern.test(key)) put(root, key.split('.'), value);
  return root;
}

function put(root: Tree, path: readonly string[], value: PlainValue): void {
  let tree = root;
  for (const name of path.slice(0, -1)) {
    tree[name] ??= Object.create(null) as Tree;
    // A value where others have members: the members are left out.
    if (typeof tree[name] !== 'object') return;
    tree = tree[name] as Tree;
  }
  tree[path.at(-1)!] = value;
}

/** Members with numbers for names, in their order. */
function listed(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  const members = Object.entries(membersIn(value)).filter(([name]) => /^\d+$/.test(name));
  return members.toSorted(([a], [b]) => Number(a) - Number(b)).map(([, member]) => member);
}

const PART = /^(?:text|thinking|tool_use|tool_result|document|file|image(?:_url)?|input_\w+)$/;

/** OpenLLMetry writes parts of a prompt as JSON; what a tool returned is a text. */
function withParts(message: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const parts = maybeJson(message['content']);
  const isList = message['role'] !== 'tool' && Array.isArray(parts) && parts.length > 0;
  return isList && parts.every((part) => PART.test(String(membersIn(part)['type'])))
    ? { ...message, content: parts }
    : message;
}

function withLists(message: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const lists = ['tool_calls', 'contents'].filter((name) => message[name] !== undefined);
  return { ...message, ...Object.fromEntries(lists.map((name) => [name, listed(message[name])])) };
}
