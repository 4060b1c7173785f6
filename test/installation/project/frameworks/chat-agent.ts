/** The agent in OpenAI's chat completions: a loop over the turns. */
import OpenAI from 'openai';
import { MAX_TOKENS, MAX_TURNS, notesAgent, TOOLS, type ToolName } from './task.ts';

const tools = Object.entries(TOOLS).map(([name, tool]) => ({ type: 'function' as const, function: { name, ...tool } }));

type Body = Pick<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, 'model' | 'messages' | 'tools' | 'max_tokens'>;

export function chatAgent(name: string, ask: (openai: OpenAI, body: Body) => Promise<OpenAI.Chat.ChatCompletion>) {
  return notesAgent(name, async (research, { baseURL, apiKey, fetch, model }) => {
    const openai = new OpenAI({ baseURL, apiKey, fetch });
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'user', content: research.question }];
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const { choices } = await ask(openai, { model, messages, tools, max_tokens: MAX_TOKENS });
      const { message } = choices[0]!;
      const calls = message.tool_calls ?? [];
      if (calls.length === 0) return message.content;
      messages.push(message);
      for (const call of calls) {
        if (call.type !== 'function') continue;
        const content = research[call.function.name as ToolName](JSON.parse(call.function.arguments));
        messages.push({ role: 'tool', tool_call_id: call.id, content });
      }
    }
    return null;
  });
}
