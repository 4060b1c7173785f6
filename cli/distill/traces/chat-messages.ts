/**
 * Messages as libraries record them, in the form of chat completions. One reader for all: what differs is how a part of a
 * message is called, and no name means two things. What cannot be an example throws `Unreadable` with the reason.
 */
import type { ChatMessage } from '../../../store/records/groups/trajectories.ts';

/** Why a call is no example, in words that are counted. */
export class Unreadable extends Error {}

type Json = Readonly<Record<string, unknown>>;

/** A list of messages, an object with one, JSON of either, or a text that a user said. */
export function readChat(value: unknown): ChatMessage[] {
  const given = maybeJson(value);
  if (typeof given === 'string') return given === '' ? [] : [{ role: 'user', content: given }];
  if (Array.isArray(given)) return given.flatMap((message) => readMessage(message, 'user'));
  if (isObject(given) && Array.isArray(given['messages'])) return readChat(given['messages']);
  if (isObject(given) && 'role' in given) return readMessage(given, 'user');
  throw new Unreadable('the messages have no known form');
}

/** Answers of a model: one message for each choice, or a text, which may be JSON that the model wrote. */
export function readAnswers(value: unknown): ChatMessage[] {
  const given = maybeJson(value);
  if (given === '' || given === null || given === undefined) return [];
  if (isObject(given) && Array.isArray(given['choices'])) {
    checkEnds(given['choices']);
    return given['choices'].flatMap((choice) => readMessage(membersIn(choice)['message'], 'assistant'));
  }
  const messages: unknown[] = Array.isArray(given) ? given : [given];
  if (messages.every(isMessage)) checkEnds(messages);
  else return [{ role: 'assistant', content: asText(value) }];
  return messages.flatMap((message) => readMessage(message, 'assistant')).filter(({ role }) => role === 'assistant');
}

/** Throws for an answer that the model did not end. `parts`: choices, messages, or what else names a reason. */
export function checkEnds(parts: readonly unknown[]): void {
  for (const part of parts.map(membersIn)) {
    const reasons = [part['finish_reason'], part['finishReason'], part['stop_reason'], part['finish_reasons']].flat();
    if (reasons.some((reason) => /^(?:length|max_tokens)$/i.test(String(reason))))
      throw new Unreadable('the answer was cut off at the token limit');
    if (reasons.some((reason) => /^content[_-]filter$|^safety$/i.test(String(reason))))
      throw new Unreadable('the answer was cut off by a content filter');
  }
}

function isMessage(value: unknown): boolean {
  return isObject(value) && ['role', 'content', 'parts', 'tool_calls'].some((member) => member in value);
}

/** The roles of other dialects. */
const ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  ai: 'assistant',
  model: 'assistant',
  developer: 'system',
  function: 'tool',
};

/** A message with results of tools is one message for each of them. */
export function readMessage(value: unknown, defaultRole: string): ChatMessage[] {
  const parsed = maybeJson(value);
  const message = isMessage(parsed) ? parsed : value;
  if (typeof message === 'string') return [{ role: defaultRole, content: message }];
  if (!isObject(message)) throw new Unreadable('the messages have no known form');
  const said = typeof message['role'] === 'string' ? message['role'].toLowerCase() : defaultRole;
  const role = ROLES[said] ?? said;
  const read = new Parts();
  for (const part of partsOf(message)) read.add(part);
  if (role === 'tool' && read.results.length === 0)
    return [{ role, tool_call_id: idOf(message['tool_call_id'] ?? message['id']), content: read.text }];
  for (const call of listOf(message['tool_calls'])) read.addCall(call);
  if (typeof message['reasoning_content'] === 'string') read.reasoning += message['reasoning_content'];
  return [...read.results, ...read.message(role)];
}

/** A list of parts may be JSON; content is text as it stands, even where it looks like a list. */
function partsOf(message: Json): unknown[] {
  const given = parseList(message['parts']) ?? parseList(message['contents']) ?? message['content'];
  if (Array.isArray(given)) return given;
  return given === null || given === undefined ? [] : [asText(given)];
}

class Parts {
  text = '';
  reasoning = '';
  readonly calls: object[] = [];
  readonly results: ChatMessage[] = [];

  add(part: unknown): void {
    if (typeof part === 'string') {
      this.text += part;
      return;
    }
    const object = membersIn(membersIn(part)['message_content'] ?? part);
    const type = typeof object['type'] === 'string' ? object['type'].replaceAll('-', '_') : 'text';
    const said = object['text'] ?? object['content'];
    if (/^(?:text|input_text|output_text)$/.test(type)) this.text += asText(said ?? '');
    else if (/^(?:reasoning|thinking)$/.test(type)) this.reasoning += asText(object['thinking'] ?? said ?? '');
    else if (/^(?:tool_call|tool_use|function_call)$/.test(type)) this.addCall(object);
    else if (/^(?:tool_call_response|tool_result)$/.test(type)) this.results.push(readResult(object));
    else throw new Unreadable('a message has images, audio or files');
  }

  addCall(value: unknown): void {
    const call = membersIn(membersIn(value)['tool_call'] ?? value);
    const called = membersIn(call['function']);
    const name = called['name'] ?? call['name'] ?? call['toolName'];
    if (typeof name !== 'string') throw new Unreadable('a tool call has no name');
    const given = called['arguments'] ?? call['arguments'] ?? call['input'] ?? call['args'] ?? {};
    const id = idOf(call['id'] ?? call['toolCallId'] ?? call['call_id']);
    this.calls.push({ id, type: 'function', function: { name, arguments: asText(given) } });
  }

  /** Nothing, if the message held results of tools alone. */
  message(role: string): ChatMessage[] {
    if (this.results.length > 0 && this.text === '' && this.calls.length === 0) return [];
    return [
      {
        role,
        content: this.text,
        ...(this.reasoning !== '' && { reasoning_content: this.reasoning }),
        ...(this.calls.length > 0 && { tool_calls: this.calls }),
      },
    ];
  }
}

function readResult(part: Json): ChatMessage {
  const said = part['response'] ?? part['result'] ?? part['output'] ?? part['content'] ?? '';
  // The AI SDK says what kind of value a result is.
  const value = isObject(said) && 'value' in said && 'type' in said ? said['value'] : said;
  return {
    role: 'tool',
    tool_call_id: idOf(part['id'] ?? part['toolCallId'] ?? part['tool_use_id']),
    content: asText(value),
  };
}

/** Tools in the form of a request; null if none are recorded, or in a form that is not known. */
export function readTools(value: unknown): object[] | null {
  const tools = (parseList(value) ?? []).map((tool) => membersIn(maybeJson(tool)));
  const read = tools.flatMap((tool) => {
    const { function: inner } = tool;
    const called = isObject(inner) ? inner : tool;
    if (typeof called['name'] !== 'string') return [];
    const parameters = maybeJson(called['parameters'] ?? called['inputSchema'] ?? called['input_schema']);
    return [
      {
        type: 'function',
        function: {
          name: called['name'],
          ...(typeof called['description'] === 'string' && { description: called['description'] }),
          ...(isObject(parameters) && { parameters: JSON.parse(asText(parameters)) as unknown }),
        },
      },
    ];
  });
  return read.length === 0 ? null : read;
}

export function maybeJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{"]/.test(value)) return value;
  try {
    return JSON.parse(value.replaceAll(STRING_OR_NUMBER, keepDigits)) as unknown;
  } catch {
    return value;
  }
}

/** A text may lack its end: it is no JSON then, and is read once all the same. */
const STRING_OR_NUMBER = /"(?:[^"\\]|\\[^])*"?|-?\d[\d.eE+-]*/g;
/** Name of a member that nobody else can know. */
const DIGITS = crypto.randomUUID();
const KEPT_DIGITS = new RegExp(`\\{"${DIGITS}":"([^"]*)"\\}`, 'g');

/** A number that JavaScript would write in another way, as an object with its digits, which `asText` writes. */
function keepDigits(token: string): string {
  return token.startsWith('"') || String(Number(token)) === token ? token : `{"${DIGITS}":"${token}"}`;
}

function parseList(value: unknown): unknown[] | null {
  const parsed = maybeJson(value);
  return Array.isArray(parsed) ? (parsed as unknown[]) : null;
}

function listOf(value: unknown): unknown[] {
  return parseList(value) ?? [];
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  return JSON.stringify(value).replaceAll(KEPT_DIGITS, '$1');
}

function idOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function membersIn(value: unknown): Json {
  return isObject(value) ? value : {};
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
