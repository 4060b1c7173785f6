/**
 * Examples for supervised steps: lines of JSON with a chat each, `{ "messages": […], "tools": […] }`, as providers take
 * them for fine-tuning. What a line must be is checked here, by its number; what a base model makes of it, in Python.
 */
import { badConfig, TemperError } from '../contract/failures.ts';
import { compactJson, membersOf, partsOf } from './json-text.ts';

export interface ChatExample {
  /** Line number in the file, counted from 1, or the line's own `id`. */
  readonly id: string;
  readonly messages: readonly Record<string, unknown>[];
  readonly tools?: readonly Record<string, unknown>[];
  /** Read from the file only; never stored. */
  readonly metadata?: Readonly<Record<string, number | string>>;
}

interface ReadExample extends ChatExample {
  /** Messages and tools in stored form: the author's numbers, and the author's order in tools and calls. */
  readonly text: string;
}

const MEMBERS = new Set(['id', 'messages', 'tools', 'metadata']);

/** Reads a file's text; `name` is what errors call it. Blank lines are skipped. */
export function parseChatExamples(text: string, name: string): ReadExample[] {
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  const examples = lines.flatMap((line, index) => (line.trim() === '' ? [] : [parseLine(line, index + 1, name)]));
  return checkChatExamples(examples, name);
}

/** Reads a script's values, trained and held out; `name` is what errors call all of them. */
export function readChatExamples(values: readonly unknown[], name: string): ReadExample[] {
  const examples = values.map((value, index) =>
    readExample(JSON.stringify(value) ?? 'null', `chat ${index + 1} of ${name}`, `chat ${index + 1}`),
  );
  refuseRepeated(examples, name);
  return examples;
}

function checkChatExamples(examples: readonly ReadExample[], name: string): ReadExample[] {
  refuseRepeated(examples, name);
  if (examples.length >= 2) return [...examples];
  throw badConfig(`${name} must have at least two examples (one is held out), got ${examples.length}; add some`);
}

/** Refuses examples that are the same: one of them could be held out, and another one trained. */
function refuseRepeated(examples: readonly ReadExample[], name: string): void {
  const seen = new Map<string, string>();
  for (const { id, text } of examples) {
    const other = seen.get(text);
    if (other !== undefined)
      throw badConfig(
        `${name} must have different examples (one could be trained, and its copy held out), ${id} repeats ${other}; remove one of them`,
      );
    seen.set(text, id);
  }
}

/** Encodes examples for a store: the same examples have the same bytes. */
export function encodeChatExamples(examples: readonly ReadExample[]): Uint8Array {
  const lines = examples.map(({ id, text }) => `{"id":${JSON.stringify(id.toWellFormed())},${text}}\n`);
  return new TextEncoder().encode(lines.join(''));
}

function parseLine(line: string, number: number, name: string): ReadExample {
  return readExample(line, `line ${number} of ${name}`, `line ${number}`);
}

/** `place` is what errors call it, `id` what it is called where it says nothing. */
function readExample(json: string, place: string, id: string): ReadExample {
  try {
    const value: unknown = JSON.parse(json);
    const example = readChatExample(value, place, id);
    return { ...example, text: storedText(compactJson(json)) };
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    throw badConfig(
      `${place} must be JSON, but ${cause instanceof Error ? cause.message : String(cause)}; correct the line`,
      { cause },
    );
  }
}

/** A message's members have no order of their own: templates take them by name. */
function storedText(compact: string): string {
  const members = new Map(membersOf(compact));
  const messages = partsOf(members.get('messages')!).map((message) => {
    const sorted = membersOf(message).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return `{${sorted.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
  });
  const tools = members.get('tools') ?? 'null';
  return `"messages":[${messages.join(',')}]${tools === 'null' ? '' : `,"tools":${tools}`}`;
}

function readChatExample(value: unknown, place: string, id: string): ChatExample {
  if (!isObject(value)) throw refused(place, 'be an object with messages', value, 'write {"messages": […]}');
  const unknown = Object.keys(value).find((member) => !MEMBERS.has(member));
  if (unknown !== undefined)
    throw refused(place, `have only ${[...MEMBERS].join(', ')}`, unknown, 'remove it, or put it into metadata');
  const { messages, tools } = value;
  checkMessages(messages, place);
  const named = typeof value['id'] === 'string' ? `${id} (${value['id'].slice(0, 200)})` : id;
  if (tools === undefined || tools === null) return { id: named, messages };
  if (!isList(tools) || tools.length === 0)
    throw refused(place, 'have tools as a list of objects', tools, 'write them as in a request, or leave tools out');
  return { id: named, messages, tools };
}

function checkMessages(messages: unknown, place: string): asserts messages is Record<string, unknown>[] {
  if (messages === undefined) throw refused(place, 'have messages', 'none', 'write {"messages": […]}');
  if (!isList(messages) || messages.length === 0)
    throw refused(place, 'have messages as a list of objects', messages, 'write a role and content for each');
  for (const [index, message] of messages.entries()) {
    const { role } = message;
    if (typeof role !== 'string') throw refused(place, `have a role in message ${index}`, role, 'add one');
    if (role === 'assistant') checkAnswer(message, `${place}, message ${index}`);
    checkWeight(message, `${place}, message ${index}`);
  }
  if (messages[0]?.['role'] === 'assistant')
    throw refused(
      place,
      'begin with a message that the assistant answers',
      'an assistant message',
      'add a user message',
    );
  if (!messages.some(({ role, weight }) => role === 'assistant' && weight !== 0))
    throw refused(place, 'have an assistant message, which is what is trained', 'none', 'add one without "weight": 0');
}

/** Providers' mark for what is not to be trained. */
function checkWeight({ role, weight }: Record<string, unknown>, place: string): void {
  if (weight === undefined || weight === null) return;
  if (role === 'assistant' && (weight === 0 || weight === 1)) return;
  const rule = 'have a weight only if it is an assistant message, and then 0 (not trained) or 1';
  throw refused(place, rule, weight, 'correct it, or leave it out');
}

function checkAnswer(message: Record<string, unknown>, place: string): void {
  if (isAnswer(message)) return;
  throw refused(place, 'have content or tool_calls', message['content'], 'write what the assistant answers');
}

/** Whether the message of an assistant says anything that can be trained. */
export function isAnswer({ content, tool_calls: calls }: Readonly<Record<string, unknown>>): boolean {
  const hasText = (typeof content === 'string' && content !== '') || (Array.isArray(content) && content.length > 0);
  return hasText || (Array.isArray(calls) && calls.length > 0);
}

function refused(place: string, rule: string, got: unknown, remedy: string): TemperError {
  const shown = typeof got === 'string' ? got : (JSON.stringify(got) ?? 'none');
  return badConfig(`${place} must ${rule}, got ${shown.slice(0, 100)}; ${remedy}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.every(isObject);
}
