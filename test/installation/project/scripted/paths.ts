/** The ways in which code asks a model, by all SDKs: each with its client, made once, and its own retries. */
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { Agent as MastraAgent } from '@mastra/core/agent';
import { Agent, OpenAIResponsesModel, run, setTracingDisabled } from '@openai/agents';
import { generateText, streamText } from 'ai';
import { createOpenAICompatible as createOpenAICompatible5 } from 'ai-sdk-5-openai-compatible';
import OpenAI from 'openai';
import type { RolloutContext } from 'temper-rl';

setTracingDisabled(true);

type Connection = Pick<RolloutContext, 'baseURL' | 'apiKey' | 'model'> & Partial<Pick<RolloutContext, 'fetch'>>;
export type Ask = (question: string) => Promise<string>;

/** Without `fetch`, they take the global one. */
export function createPaths({ model, ...connection }: Connection): Record<string, Ask> {
  const openai = new OpenAI(connection);
  const anthropic = new Anthropic({ ...connection, baseURL: connection.baseURL.replace('/v1', '') });
  const aiSdk = createOpenAICompatible({ name: 'temper', ...connection })(model);
  const { apiKey, ...configuration } = connection;
  const langchain = new ChatOpenAI({ model, apiKey, configuration });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('answer', async ({ messages }) => ({ messages: [await langchain.invoke(messages)] }))
    .addEdge(START, 'answer')
    .compile();
  const agent = new Agent({ name: 'agent', model: new OpenAIResponsesModel(openai as never, model) });
  const mastra = new MastraAgent({
    name: 'mastra',
    instructions: '',
    model: createOpenAICompatible5({ name: 'temper', ...connection })(model),
  });
  const messagesOf = (content: string) => [{ role: 'user' as const, content }];
  return {
    'OpenAI chat': async (question) => {
      const { choices } = await openai.chat.completions.create({ model, messages: messagesOf(question) });
      return choices[0]?.message.content ?? '';
    },
    'OpenAI chat stream': async (question) =>
      (await openai.chat.completions.stream({ model, messages: messagesOf(question) }).finalContent()) ?? '',
    'OpenAI responses': async (input) => (await openai.responses.create({ model, input })).output_text,
    generateText: async (prompt) => (await generateText({ model: aiSdk, prompt })).text,
    streamText: async (prompt) => streamText({ model: aiSdk, prompt, onError: () => undefined }).text,
    LangChain: async (question) => (await langchain.invoke(question)).text,
    LangGraph: async (question) => (await graph.invoke({ messages: messagesOf(question) })).messages.at(-1)!.text,
    'OpenAI Agents': async (question) => (await run(agent, question)).finalOutput ?? '',
    Anthropic: async (question) => {
      const { content } = await anthropic.messages.create({ model, max_tokens: 32, messages: messagesOf(question) });
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    },
    'Anthropic stream': (question) =>
      anthropic.messages.stream({ model, max_tokens: 32, messages: messagesOf(question) }).finalText(),
    Mastra: async (question) => {
      // Without it, Mastra asks for 0.
      const { text } = await mastra.generate(question, { modelSettings: { temperature: 1 } });
      return text;
    },
  };
}
