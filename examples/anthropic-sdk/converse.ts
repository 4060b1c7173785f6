/** Both editions play this: a loop of streamed messages, tool calls and their results. */
import Anthropic from '@anthropic-ai/sdk';
import type { RolloutContext } from 'temper-rl';

export interface Conversation {
  readonly system?: string;
  readonly question: string;
  readonly tools: Anthropic.Tool[];
  /** `input` is what the model wrote: JSON of any shape, `null` included. What it throws is told to the model. */
  readonly run: (name: string, input: unknown) => string;
  readonly maxTurns: number;
  readonly maxTokensPerTurn: number;
}

/** The answer is null where the last turn is none: it calls tools, or was cut off. */
export async function converse(
  { model, baseURL, apiKey, fetch, signal }: RolloutContext,
  { system, question, tools, run, maxTurns, maxTokensPerTurn }: Conversation,
): Promise<{ answer: string | null; turns: number }> {
  // The SDK adds /v1 itself. Temper retries.
  const anthropic = new Anthropic({ baseURL: baseURL.replace('/v1', ''), apiKey, fetch, maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }];
  const task = system === undefined ? { messages, tools } : { system, messages, tools };

  for (let turns = 1; turns <= maxTurns; turns++) {
    const stream = anthropic.messages.stream({ model, ...task, max_tokens: maxTokensPerTurn }, { signal });
    const { content, stop_reason: reason } = await stream.finalMessage();
    if (reason === 'end_turn') return { answer: textOf(content), turns };
    if (reason !== 'tool_use') return { answer: null, turns };
    messages.push(
      { role: 'assistant', content },
      { role: 'user', content: content.flatMap((block) => use(block, run)) },
    );
  }
  return { answer: null, turns: maxTurns };
}

function textOf(content: readonly Anthropic.ContentBlock[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

function use(block: Anthropic.ContentBlock, run: Conversation['run']): Anthropic.ToolResultBlockParam[] {
  if (block.type !== 'tool_use') return [];
  const result = { type: 'tool_result', tool_use_id: block.id } as const;
  try {
    return [{ ...result, content: run(block.name, block.input) }];
  } catch (error) {
    return [{ ...result, content: `Error: ${(error as Error).message}`, is_error: true }];
  }
}
