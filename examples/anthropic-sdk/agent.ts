/** Looks a word up in a mailbox, with Anthropic's SDK: a loop of streamed messages, tool calls and their results. */
import Anthropic from '@anthropic-ai/sdk';
import { defineAgent } from 'temper-rl';
import { EDITION, examScenarios, Lookup, scenarios, type Scenario } from '../email-search/lookup.ts';

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

  async rollout({ scenario, model, baseURL, apiKey, fetch, signal }) {
    const mailbox = new Lookup(scenario);
    // The SDK adds /v1 itself. Temper retries.
    const anthropic = new Anthropic({ baseURL: baseURL.replace('/v1', ''), apiKey, fetch, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: mailbox.question }];

    for (let turn = 1; turn <= EDITION.maxTurns; turn++) {
      const stream = anthropic.messages.stream(
        { model, messages, tools, max_tokens: EDITION.maxTokensPerTurn },
        { signal },
      );
      const { content, stop_reason: reason } = await stream.finalMessage();
      if (reason === 'end_turn') return mailbox.grade(textOf(content), turn);
      if (reason !== 'tool_use') return mailbox.grade(null, turn);
      messages.push(
        { role: 'assistant', content },
        { role: 'user', content: content.flatMap((block) => use(mailbox, block)) },
      );
    }
    return mailbox.grade(null, EDITION.maxTurns);
  },
});

function textOf(content: readonly Anthropic.ContentBlock[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

function use(mailbox: Lookup, block: Anthropic.ContentBlock): Anthropic.ToolResultBlockParam[] {
  if (block.type !== 'tool_use') return [];
  return [{ type: 'tool_result', tool_use_id: block.id, content: run(mailbox, block) }];
}

/** `input` is what the model wrote: JSON of any shape, `null` included. */
function run(mailbox: Lookup, { name, input }: Anthropic.ToolUseBlock): string {
  const { query, id } = (input ?? {}) as { query?: unknown; id?: unknown };
  if (name === 'search') return mailbox.search(String(query));
  if (name === 'read') return mailbox.read(Number(id));
  return `Error: there is no tool ${name}`;
}
