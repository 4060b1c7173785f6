import { tool } from '@langchain/core/tools';
import { GraphRecursionError } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { MAX_TOKENS, MAX_TURNS, notesAgent, TOOLS } from './task.ts';

export default notesAgent('langgraph', async (research, { baseURL, apiKey, fetch, model }) => {
  const configuration = { baseURL, fetch };
  const llm = new ChatOpenAI({ model, apiKey, configuration, maxTokens: MAX_TOKENS, maxRetries: 0 });
  const { search, read } = TOOLS;
  const tools = [
    tool((input) => research.search(input as { query: string }), {
      name: 'search',
      description: search.description,
      schema: search.parameters,
    }),
    tool((input) => research.read(input as { id: number }), {
      name: 'read',
      description: read.description,
      schema: read.parameters,
    }),
  ];
  const agent = createReactAgent({ llm, tools });
  try {
    // A turn of the model and one of its tools are two steps of the graph.
    const recursionLimit = 2 * MAX_TURNS;
    const { messages } = await agent.invoke(
      { messages: [{ role: 'user', content: research.question }] },
      { recursionLimit },
    );
    return String(messages.at(-1)?.content ?? '');
  } catch (error) {
    if (error instanceof GraphRecursionError) return null;
    throw error;
  }
});
