import OpenAI from 'openai';
import { defineAgent } from 'temper-rl';
import { MAX_TOKENS, MAX_TURNS, Research, scenarios, TOOLS, type Notebook, type ToolName } from './task.ts';

const tools = Object.entries(TOOLS).map(([name, tool]) => ({
  type: 'function' as const,
  name,
  strict: false,
  ...tool,
}));

export default defineAgent<Notebook>({
  name: 'notes',
  scenarios,
  async rollout(context) {
    const research = new Research(context);
    const { baseURL, apiKey, fetch, model } = context;
    const openai = new OpenAI({ baseURL, apiKey, fetch });
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: research.question }];
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const response = await openai.responses.create({ model, input, tools, max_output_tokens: MAX_TOKENS });
      const calls = response.output.filter((item) => item.type === 'function_call');
      if (calls.length === 0) return research.reward(response.output_text);
      input.push(...(response.output as OpenAI.Responses.ResponseInput));
      for (const { name, arguments: args, call_id } of calls) {
        const output = research[name as ToolName](JSON.parse(args));
        input.push({ type: 'function_call_output', call_id, output });
      }
    }
    return research.reward(null);
  },
});
