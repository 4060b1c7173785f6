import Anthropic from '@anthropic-ai/sdk';
import { MAX_TOKENS, MAX_TURNS, notesAgent, TOOLS, type ToolName } from './task.ts';

const tools = Object.entries(TOOLS).map(([name, { description, parameters }]) => ({
  name,
  description,
  input_schema: parameters,
}));

export default notesAgent('anthropic-sdk', async (research, { baseURL, apiKey, fetch, model }) => {
  const anthropic = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ''), apiKey, fetch });
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: research.question }];
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const { content } = await anthropic.messages.create({ model, messages, tools, max_tokens: MAX_TOKENS });
    const calls = content.filter((block) => block.type === 'tool_use');
    const text = content.filter((block) => block.type === 'text').map((block) => block.text);
    if (calls.length === 0) return text.join('');
    messages.push({ role: 'assistant', content });
    const results = calls.map(({ id, name, input }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: research[name as ToolName](input as never),
    }));
    messages.push({ role: 'user', content: results });
  }
  return null;
});
