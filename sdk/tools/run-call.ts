/** One tool call of a model: whatever goes wrong is returned to the model, which may do better. */
import type OpenAI from 'openai';

import type { Tool } from './tool.ts';

export type FunctionCall = OpenAI.Chat.ChatCompletionMessageFunctionToolCall;
export type Once = <T>(name: string, fn: () => T | Promise<T>) => Promise<T>;

export interface PlayedToolCall {
  /** Counted from 1. */
  turn: number;
  id: string;
  name: string;
  /** The model's arguments, parsed; null if they are not JSON. */
  arguments: unknown;
  /** The result that the model saw. */
  content: string;
  failed: boolean;
}

interface Place {
  tools: ReadonlyMap<string, Tool>;
  once: Once | null;
  turn: number;
  index: number;
}

type Outcome = Pick<PlayedToolCall, 'content' | 'failed'>;

const MAX_ERROR = 2000;

export async function runCall(call: FunctionCall, place: Place): Promise<PlayedToolCall> {
  const { id } = call;
  const { name, arguments: text } = call.function;
  const parsed = parseArguments(text);
  const outcome = parsed.error === null ? await runTool(call, parsed.value, place) : failure(parsed.error);
  return { turn: place.turn, id, name, arguments: parsed.value, ...outcome };
}

/** A tool that runs once has one end: a failure that was returned to the model is recorded like a result. */
function runTool({ id, function: { name } }: FunctionCall, args: unknown, place: Place): Promise<Outcome> | Outcome {
  const { tools, once, turn, index } = place;
  const tool = tools.get(name);
  if (tool === undefined) return failure(`there is no tool ${name}; the tools are ${[...tools.keys()].join(', ')}`);
  const run = (): Promise<Outcome> => callTool(tool, args);
  return tool.once && once !== null ? once(`tool ${name} ${turn}.${index} ${id}`, run) : run();
}

async function callTool(tool: Tool, args: unknown): Promise<Outcome> {
  try {
    return { content: asText(await tool.call(args)), failed: false };
  } catch (error) {
    return failure(error instanceof Error ? error.message : String(error));
  }
}

function failure(message: string): Outcome {
  return { content: describeFailedCall(message), failed: true };
}

/** The text that a model gets of a call that failed. */
export function describeFailedCall(message: string): string {
  return `Error: ${message.slice(0, MAX_ERROR)}`;
}

function asText(result: unknown): string {
  if (typeof result === 'string') return result;
  return result === undefined ? 'ok' : JSON.stringify(result);
}

/** Some models write no arguments at all if there are none. */
function parseArguments(text: string): { value: unknown; error: string | null } {
  try {
    return { value: text.trim() === '' ? {} : (JSON.parse(text) as unknown), error: null };
  } catch {
    // Not in the words of the JavaScript engine: they change, and the conversation must not.
    return { value: null, error: `arguments must be JSON, got ${text.slice(0, 200)}` };
  }
}
