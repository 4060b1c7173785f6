/** Both editions play this: a model, its tools, and a check that sends answers without a source back. */
import { AIMessage, RemoveMessage, type BaseMessage } from '@langchain/core/messages';
import type { StructuredTool } from '@langchain/core/tools';
import { Annotation, END, MessagesAnnotation, REMOVE_ALL_MESSAGES, START, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import type { RolloutContext } from 'temper-rl';

export interface Research {
  /** The messages that each conversation begins with. */
  readonly question: BaseMessage[];
  readonly tools: StructuredTool[];
  /** Whether an answer cites a mail that was read. */
  readonly hasSource: (answer: string) => boolean;
  /** Turns of the model, in all conversations of an attempt together. */
  readonly maxTurns: number;
  readonly maxTokensPerTurn: number;
}

const count = () => Annotation<number>({ reducer: (sum, more) => sum + more, default: () => 0 });
const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  turns: count(),
  /** Answers that were sent back. */
  rejected: count(),
  /** Null until the check lets one pass. */
  answer: Annotation<string | null>({ reducer: (_, answer) => answer, default: () => null }),
});

export async function research(context: RolloutContext, task: Research) {
  const graph = createResearcher(context, task);
  // LangGraph's own limit is 25 nodes, and a turn of the model takes two.
  const limits = { recursionLimit: 2 * task.maxTurns + 1, signal: context.signal };
  return graph.invoke({ messages: task.question }, limits);
}

function createResearcher({ model, baseURL, apiKey, fetch }: RolloutContext, task: Research) {
  const { tools, maxTurns, maxTokensPerTurn: maxTokens } = task;
  // Temper retries, so the client must not.
  const client = new ChatOpenAI({ model, apiKey, configuration: { baseURL, fetch }, maxTokens, maxRetries: 0 });
  const llm = client.bindTools(tools);
  return new StateGraph(State)
    .addNode('ask', async ({ messages }, config) => ({ messages: [await llm.invoke(messages, config)], turns: 1 }))
    .addNode('tools', new ToolNode(tools))
    .addNode('check', ({ messages }) => check(messages.at(-1)?.text ?? '', task))
    .addEdge(START, 'ask')
    .addConditionalEdges('ask', ({ messages }) => (callsTools(messages) ? 'tools' : 'check'), ['tools', 'check'])
    .addConditionalEdges('tools', ({ turns }) => (turns < maxTurns ? 'ask' : END), ['ask', END])
    .addConditionalEdges('check', ({ answer, turns }) => (answer === null && turns < maxTurns ? 'ask' : END), [
      'ask',
      END,
    ])
    .compile();
}

function callsTools(messages: typeof State.State.messages): boolean {
  const last = messages.at(-1);
  return AIMessage.isInstance(last) && (last.tool_calls?.length ?? 0) > 0;
}

/** An answer passes if it has a source. Otherwise the conversation begins again with the question. */
function check(answer: string, { hasSource, question }: Research): typeof State.Update {
  if (hasSource(answer)) return { answer };
  return { messages: [new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), ...question], rejected: 1 };
}
