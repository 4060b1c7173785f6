/** Looks a word up in a mailbox, with LangGraph.js: a model, its tools, and a check that sends answers without a source back. */
import { AIMessage, HumanMessage, RemoveMessage } from '@langchain/core/messages';
import { tool, type StructuredTool } from '@langchain/core/tools';
import { Annotation, END, MessagesAnnotation, REMOVE_ALL_MESSAGES, START, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { defineAgent, type RolloutContext } from 'temper-rl';
import { MAX_TOKENS_PER_TURN, parseAnswer } from '../grade.ts';
import { Inbox } from '../inbox.ts';
import { examScenarios, scenarios, type Scenario } from '../mailbox.ts';

/** Turns of the model, in all conversations of an attempt together. */
const MAX_TURNS = 8;

export default defineAgent<Scenario>({
  name: 'langgraph',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const inbox = new Inbox(context.scenario);
    // LangGraph's own limit is 25 nodes, and a turn of the model takes two.
    const limits = { recursionLimit: 2 * MAX_TURNS + 1, signal: context.signal };
    const question = new HumanMessage(inbox.question);
    const graph = createResearcher(context, inbox, question);
    const { answer, turns, rejected } = await graph.invoke({ messages: [question] }, limits);
    const { reward, metrics } = inbox.grade(answer, turns);
    return { reward, metrics: { ...metrics, rejected } };
  },
});

const count = () => Annotation<number>({ reducer: (sum, more) => sum + more, default: () => 0 });
const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  turns: count(),
  /** Answers that were sent back. */
  rejected: count(),
  /** Null until the check lets one pass. */
  answer: Annotation<string | null>({ reducer: (_, answer) => answer, default: () => null }),
});

function createResearcher(context: RolloutContext, inbox: Inbox, question: HumanMessage) {
  const { model, baseURL, apiKey, fetch } = context;
  const tools = mailTools(inbox);
  // Temper retries, so the client must not.
  const client = new ChatOpenAI({
    model,
    apiKey,
    configuration: { baseURL, fetch },
    maxTokens: MAX_TOKENS_PER_TURN,
    maxRetries: 0,
  });
  const llm = client.bindTools(tools);

  /** An answer passes if it cites a mail that was read. Otherwise the conversation begins again with the question. */
  const check = (answer: string): typeof State.Update => {
    const source = parseAnswer(answer)?.source ?? null;
    if (source !== null && inbox.hasRead(source)) return { answer };
    return { messages: [new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), question], rejected: 1 };
  };

  return new StateGraph(State)
    .addNode('ask', async ({ messages }, config) => ({ messages: [await llm.invoke(messages, config)], turns: 1 }))
    .addNode('tools', new ToolNode(tools))
    .addNode('check', ({ messages }) => check(messages.at(-1)?.text ?? ''))
    .addEdge(START, 'ask')
    .addConditionalEdges('ask', ({ messages }) => (callsTools(messages) ? 'tools' : 'check'), ['tools', 'check'])
    .addConditionalEdges('tools', ({ turns }) => (turns < MAX_TURNS ? 'ask' : END), ['ask', END])
    .addConditionalEdges('check', ({ answer, turns }) => (answer === null && turns < MAX_TURNS ? 'ask' : END), [
      'ask',
      END,
    ])
    .compile();
}

function callsTools(messages: typeof State.State.messages): boolean {
  const last = messages.at(-1);
  return AIMessage.isInstance(last) && (last.tool_calls?.length ?? 0) > 0;
}

/** With schemas as the pocket model knows them, to the byte. Other models take zod's as well. */
function mailTools(inbox: Inbox): StructuredTool[] {
  const search = tool(({ query }: { query: string }) => inbox.search(query), {
    name: 'search',
    description: 'Ids of what has the word.',
    schema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  });
  const read = tool(({ id }: { id: number }) => inbox.read(id), {
    name: 'read',
    description: 'The text of an id.',
    schema: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] },
  });
  return [search, read];
}
