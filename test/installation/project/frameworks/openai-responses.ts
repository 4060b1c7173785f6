import OpenAI from 'openai';
import { MAX_TOKENS, MAX_TURNS, notesAgent, TOOLS, type ToolName } from './task.ts';

const tools = Object.entries(TOOLS).map(([name, tool]) => ({
  type: 'function' as const,
  name,
  strict: false,
  ...tool,
}));

export default notesAgent('openai-responses', async (research, { baseURL, apiKey, fetch, model }) => {
  const openai = new OpenAI({ baseURL, apiKey, fetch });
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: research.question }];
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const response = await openai.responses.create({ model, input, tools, max_output_tokens: MAX_TOKENS });
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) return response.output_text;
    input.push(...(response.output as OpenAI.Responses.ResponseInput));
    for (const { name, arguments: args, call_id } of calls) {
      const output = research[name as ToolName](JSON.parse(args));
      input.push({ type: 'function_call_output', call_id, output });
    }
  }
  return null;
});
