/**
 * Model activities of `@temporalio/openai-agents`. The Agents SDK has a form of its own for requests and answers; here it
 * becomes the request that its own client sends to OpenAI's responses, so that both ways have the same prompts and seeds.
 */
import type { Completion } from '../connections/completion.ts';
import type { ActivityDialect, Memory, ParsedCall, RequestBody } from './dialect.ts';
import { asList, parseBody } from './request-body.ts';
import { responses } from './responses.ts';
import { responseEvents, writeResponse } from './responses-answer.ts';

type Item = Readonly<Record<string, unknown>>;

export const openaiAgents: ActivityDialect = {
  parse: parseRequest,
  write: (completion, call) => readResponse(writeResponse(completion, call)),
  keep: (completion, call, memory) => responses.keep?.(completion, call, memory),
};

/** The workflow reads its events once the activity has ended. */
export const openaiAgentsStream: ActivityDialect = {
  ...openaiAgents,
  write: (completion, call) => [...tellEvents(completion, call)],
};

function parseRequest(text: string, memory: Memory): ParsedCall {
  const { modelName, request } = parseBody(text);
  const asked = (request ?? {}) as Item;
  const settings = (asked['modelSettings'] ?? {}) as Item;
  const body = {
    model: modelName,
    ...conversation(asked),
    tools: [...asList('tools', asked['tools'] ?? []).map(asTool), ...handoffs(asked['handoffs'])],
    ...sampling(settings),
    text: textOf(asked['outputType'], settings['text']),
    ...(settings['providerData'] as Item | undefined),
  };
  return responses.parse(JSON.stringify(body), memory);
}

function conversation({ systemInstructions, input, previousResponseId, conversationId, prompt }: Item): Item {
  const hasInstructions = typeof systemInstructions === 'string' && systemInstructions.trim() !== '';
  return {
    instructions: hasInstructions ? systemInstructions : null,
    input: typeof input === 'string' ? input : asList('input', input).map((item) => asInputItem(item as Item)),
    previous_response_id: previousResponseId,
    // Refused by name: OpenAI keeps them, and nobody else has them.
    conversation: conversationId,
    prompt,
  };
}

function sampling(settings: Item): Item {
  return {
    temperature: settings['temperature'],
    top_p: settings['topP'],
    max_output_tokens: settings['maxTokens'],
    tool_choice: asChoice(settings['toolChoice']),
    parallel_tool_calls: settings['parallelToolCalls'],
    truncation: settings['truncation'],
    store: settings['store'],
    prompt_cache_retention: settings['promptCacheRetention'],
    reasoning: settings['reasoning'],
  };
}

function asTool(tool: object): Item {
  const { type, name, description, parameters, strict } = tool as Item;
  // Hosted tools are OpenAI's own; the dialect of responses refuses them by their type.
  return type === 'function' ? { type, name, description, parameters, strict } : { type, name };
}

/** Agents that may take over are offered as tools. */
function handoffs(given: unknown = []): Item[] {
  return asList('handoffs', given).map((handoff) => {
    const { toolName, toolDescription, inputJsonSchema, strictJsonSchema } = handoff as Item;
    const told = { name: toolName, description: toolDescription, parameters: inputJsonSchema };
    return { type: 'function', ...told, strict: strictJsonSchema };
  });
}

function asChoice(choice: unknown): unknown {
  if (typeof choice !== 'string' || ['auto', 'required', 'none'].includes(choice)) return choice;
  return { type: 'function', name: choice };
}

function textOf(outputType: unknown, text: unknown): unknown {
  return outputType === undefined || outputType === 'text'
    ? text
    : { ...(text as Item | undefined), format: outputType };
}

function asInputItem(item: Item): Item {
  const { providerData, callId, output, namespace: _, ...rest } = item;
  const own = (providerData ?? {}) as Item;
  switch (item['type'] ?? 'message') {
    case 'message':
      return { ...rest, content: contentOf(item['content']) };
    case 'function_call':
      return { ...own, ...rest, call_id: callId };
    case 'function_call_result':
      return { type: 'function_call_output', call_id: callId, output: outputOf(output) };
    case 'reasoning':
      // The model's thoughts stand beside the summary.
      return { ...own, type: 'reasoning' };
    default:
      return rest;
  }
}

function contentOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return (content as Item[]).map((part) => ({ ...part, providerData: undefined }));
}

function outputOf(output: unknown): unknown {
  if (typeof output === 'string' || Array.isArray(output)) return output;
  const { type, text } = (output ?? {}) as Item;
  return type === 'text' ? text : [output];
}

interface Response {
  readonly id: string;
  readonly output: readonly Item[];
  readonly usage: Usage;
}

interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly input_tokens_details: object;
  readonly output_tokens_details: object;
}

function readResponse(written: object): object {
  const { id, output, usage } = written as Response;
  return { usage: readUsage(usage), output: output.map(asOutputItem), responseId: id, providerData: written };
}

function readUsage(usage: Usage): object {
  const { input_tokens_details: inputTokensDetails, output_tokens_details: outputTokensDetails } = usage;
  const counted = {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.total_tokens,
  };
  const entry = { ...counted, inputTokensDetails, outputTokensDetails, endpoint: 'responses.create' };
  return {
    requests: 1,
    ...counted,
    inputTokensDetails: [inputTokensDetails],
    outputTokensDetails: [outputTokensDetails],
    requestUsageEntries: [entry],
  };
}

/** An item as the SDK's own client makes it: members that it does not name are kept beside it, and come back with it. */
function asOutputItem(item: Item): object {
  switch (item['type']) {
    case 'message': {
      const { id, type, role, content, status, ...providerData } = item;
      return { id, type, role, content: (content as Item[]).map(asOutputPart), status, providerData };
    }
    case 'function_call': {
      const { call_id: callId, name, arguments: args, status, ...providerData } = item;
      return { type: item['type'], id: item['id'], callId, name, status, arguments: args, providerData };
    }
    default: {
      const { summary: _, ...providerData } = item;
      return { type: item['type'], id: item['id'], content: [], providerData };
    }
  }
}

function asOutputPart({ type, text, ...providerData }: Item): object {
  return { type, text, providerData };
}

const SOURCE = { rawModelEventSource: 'openai-responses' };

function* tellEvents(completion: Completion, call: ParsedCall): Generator<object> {
  for (const event of responseEvents(completion, call)) {
    const told: RequestBody = event;
    if (event.type === 'response.created') yield { type: 'response_started', providerData: event };
    else if (event.type === 'response.completed' || event.type === 'response.incomplete') yield finished(told);
    else if (event.type === 'response.output_text.delta') {
      const { delta, ...providerData } = told;
      yield { type: 'output_text_delta', delta, providerData };
    }
    yield { type: 'model', event, providerData: SOURCE };
  }
}

function finished({ response, ...providerData }: RequestBody): object {
  const { id, output, usage, ...rest } = response as Response & Item;
  const read = { id, output: output.map(asOutputItem), usage: readUsage(usage), providerData: rest };
  return { type: 'response_done', response: read, providerData };
}
