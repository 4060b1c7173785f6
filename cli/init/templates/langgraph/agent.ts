/** Learns the multiplication table, through LangGraph.js: a graph with one node. */
import { HumanMessage } from '@langchain/core/messages';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { defineAgent } from 'temper-rl';

const numbers = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const table = numbers.flatMap((left) => numbers.map((right) => ({ id: `${left}x${right}`, left, right })));
const isHeldOut = ({ left, right }: (typeof table)[number]) => (left + right) % 4 === 3;

export default defineAgent({
  name: 'times-table',
  scenarios: table.filter((problem) => !isHeldOut(problem)),
  // Never trained on. Each problem is asked three times, because the model samples its answers.
  evalScenarios: [1, 2, 3].flatMap((round) =>
    table.filter(isHeldOut).map((problem) => ({ ...problem, id: `${problem.id}-${round}` })),
  ),

  async rollout({ scenario: { left, right }, model, baseURL, apiKey, fetch, signal }) {
    // The model that is trained. Temper retries, so the client must not.
    const policy = new ChatOpenAI({ model, apiKey, maxTokens: 4, maxRetries: 0, configuration: { baseURL, fetch } });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('answer', async ({ messages }) => ({ messages: [await policy.invoke(messages, { signal })] }))
      .addEdge(START, 'answer')
      .addEdge('answer', END)
      .compile();
    const { messages } = await graph.invoke({ messages: [new HumanMessage(`${left}*${right}=`)] }, { signal });
    const correct = messages.at(-1)?.text === String(left * right);
    return { reward: correct ? 1 : 0, metrics: { correct } };
  },
});
