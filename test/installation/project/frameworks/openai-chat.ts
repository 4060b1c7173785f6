import OpenAI from 'openai';
import { defineAgent } from 'temper-rl';
import { MAX_TOKENS, MAX_TURNS, Research, scenarios, TOOLS, type Notebook, type ToolName } from './task.ts';

const tools = Object.entries(TOOLS).map(([name, tool]) => ({ type: 'function' as const, function: { name, ...tool } }));

export default defineAgent<Notebook>({
  name: 'notes',
  scenarios,
  async rollout(context) {
    const research = new Research(context);
    const { baseURL, apiKey, fetch, model } = context;
    const openai = new OpenAI({ baseURL, apiKey, fetch });
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'user', content: research.question }];
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const { choices } = await openai.chat.completions.create({ model, messages, tools, max_tokens: MAX_TOKENS });
      const { message } = choices[0]!;
      const calls = message.tool_calls ?? [];
      if (calls.length === 0) return research.reward(message.content);
      messages.push(message);
      for (const call of calls) {
        if (call.type !== 'function') continue;
        const content = research[call.function.name as ToolName](JSON.parse(call.function.arguments));
        messages.push({ role: 'tool', tool_call_id: call.id, content });
      }
    }
    return research.reward(null);
  },
});
