/** Looks a word up in a mailbox, with Anthropic's SDK: a loop of streamed messages, tool calls and their results. */
import Anthropic from '@anthropic-ai/sdk';
import { defineAgent, type RolloutContext } from 'temper-rl';
import { MAX_TOKENS_PER_TURN, MAX_TURNS } from '../grade.ts';
import { Inbox } from '../inbox.ts';
import { examScenarios, scenarios, type Scenario } from '../mailbox.ts';

// Schemas as the pocket model knows them, to the byte.
const tools: Anthropic.Tool[] = [
  {
    name: 'search',
    description: 'Ids of what has the word.',
    input_schema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  },
  {
    name: 'read',
    description: 'The text of an id.',
    input_schema: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] },
  },
];

export default defineAgent<Scenario>({
  name: 'anthropic-sdk',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const inbox = new Inbox(context.scenario);
    const { answer, turns } = await converse(context, inbox);
    return inbox.grade(answer, turns);
  },
});

/** The answer is null where the last turn is none: it calls tools, or was cut off. */
async function converse({ model, baseURL, apiKey, fetch, signal }: RolloutContext, inbox: Inbox) {
  // The SDK adds /v1 itself. Temper retries.
  const anthropic = new Anthropic({ baseURL: baseURL.replace('/v1', ''), apiKey, fetch, maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: inbox.question }];

  for (let turns = 1; turns <= MAX_TURNS; turns++) {
    const stream = anthropic.messages.stream({ model, messages, tools, max_tokens: MAX_TOKENS_PER_TURN }, { signal });
    const { content, stop_reason: reason } = await stream.finalMessage();
    if (reason === 'end_turn') return { answer: textOf(content), turns };
    if (reason !== 'tool_use') return { answer: null, turns };
    const results = content.flatMap((block) => (block.type === 'tool_use' ? [use(block, inbox)] : []));
    messages.push({ role: 'assistant', content }, { role: 'user', content: results });
  }
  return { answer: null, turns: MAX_TURNS };
}

function textOf(content: readonly Anthropic.ContentBlock[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

/** The model may do better in its next turn if it is told what was wrong. */
function use(block: Anthropic.ToolUseBlock, inbox: Inbox): Anthropic.ToolResultBlockParam {
  const result = { type: 'tool_result', tool_use_id: block.id } as const;
  try {
    return { ...result, content: run(block, inbox) };
  } catch (error) {
    return { ...result, content: `Error: ${(error as Error).message}`, is_error: true };
  }
}

/** The input is what the model wrote: JSON of any shape, null included. */
function run({ name, input }: Anthropic.ToolUseBlock, inbox: Inbox): string {
  const { query, id } = (input ?? {}) as { query?: unknown; id?: unknown };
  if (name === 'search') return inbox.search(String(query));
  if (name === 'read') return inbox.read(Number(id));
  throw new Error(`there is no tool ${name}`);
}
