/** Looks a word up in a mailbox, with LangGraph.js: a model, its tools, and a check that sends answers without a source back. */
import { AIMessage, HumanMessage, RemoveMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { Annotation, END, MessagesAnnotation, REMOVE_ALL_MESSAGES, START, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { defineAgent, type RolloutContext } from 'temper-rl';
import { EDITION, examScenarios, Lookup, parseSmallAnswer, scenarios, type Scenario } from '../email-search/lookup.ts';

/** Of the model, in all conversations of an attempt together. */
const MAX_TURNS = 8;

const count = () => Annotation<number>({ reducer: (sum, more) => sum + more, default: () => 0 });
const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  turns: count(),
  /** Answers that were sent back. */
  rejected: count(),
  /** Null until the check lets one pass. */
  answer: Annotation<string | null>({ reducer: (_, answer) => answer, default: () => null }),
});

export default defineAgent<Scenario>({
  name: 'langgraph',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const mailbox = new Lookup(context.scenario);
    const messages = [new HumanMessage(mailbox.question)];
    const graph = createResearcher(context, mailbox);
    const { answer, turns, rejected } = await graph.invoke({ messages }, { signal: context.signal });
    const { reward, metrics } = mailbox.grade(answer, turns);
    return { reward, metrics: { ...metrics, rejected } };
  },
});

function createResearcher({ model, baseURL, apiKey, fetch }: RolloutContext, mailbox: Lookup) {
  const tools = mailTools(mailbox);
  const maxTokens = EDITION.maxTokensPerTurn;
  // Temper retries, so the client must not.
  const client = new ChatOpenAI({ model, apiKey, configuration: { baseURL, fetch }, maxTokens, maxRetries: 0 });
  const llm = client.bindTools(tools);
  return new StateGraph(State)
    .addNode('ask', async ({ messages }, config) => ({ messages: [await llm.invoke(messages, config)], turns: 1 }))
    .addNode('tools', new ToolNode(tools))
    .addNode('check', ({ messages }) => check(messages.at(-1)?.text ?? '', mailbox))
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

/** An answer passes if it cites a mail that was read. Otherwise the conversation begins again with the question. */
function check(text: string, mailbox: Lookup): typeof State.Update {
  const sources = parseSmallAnswer(text)?.sources ?? [];
  if (sources.some((id) => mailbox.hasRead(id))) return { answer: text };
  const messages = [new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), new HumanMessage(mailbox.question)];
  return { messages, rejected: 1 };
}

/** With schemas as the pocket model knows them, to the byte. Other models take zod's as well. */
function mailTools(mailbox: Lookup) {
  const search = tool(({ query }: { query: string }) => mailbox.search(query), {
    name: 'search',
    description: 'Ids of what has the word.',
    schema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  });
  const read = tool(({ id }: { id: number }) => mailbox.read(id), {
    name: 'read',
    description: 'The text of an id.',
    schema: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] },
  });
  return [search, read];
}
