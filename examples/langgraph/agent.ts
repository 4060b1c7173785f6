/** Looks a word up in a mailbox, with LangGraph.js. */
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { defineAgent } from 'temper-rl';
import { EDITION, examScenarios, Lookup, parseSmallAnswer, scenarios, type Scenario } from '../email-search/lookup.ts';
import { research } from './graph.ts';

export default defineAgent<Scenario>({
  name: 'langgraph',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const mailbox = new Lookup(context.scenario);
    const { answer, turns, rejected } = await research(context, {
      question: [new HumanMessage(mailbox.question)],
      tools: mailTools(mailbox),
      hasSource: (text) => parseSmallAnswer(text)?.sources.some((id) => mailbox.hasRead(id)) ?? false,
      maxTurns: 8,
      maxTokensPerTurn: EDITION.maxTokensPerTurn,
    });
    const { reward, metrics } = mailbox.grade(answer, turns);
    return { reward, metrics: { ...metrics, rejected } };
  },
});

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
