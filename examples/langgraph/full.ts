/** The full edition, for a real model: an office's mailbox, with LangGraph.js and tools in zod. */
import { HumanMessage, SystemMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { defineAgent } from 'temper-rl';
import {
  EDITION,
  examScenarios,
  Office,
  parseAnswer,
  scenarios,
  TASK,
  TOOLS,
  type Scenario,
} from '../email-search/office.ts';
import { research } from './graph.ts';

export default defineAgent<Scenario>({
  name: 'langgraph-full',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const office = new Office(context.scenario);
    const { answer, turns, rejected } = await research(context, {
      question: [new SystemMessage(TASK), new HumanMessage(office.question)],
      tools: mailTools(office),
      hasSource: (text) => mayPass(text, office),
      maxTurns: EDITION.maxTurns,
      maxTokensPerTurn: EDITION.maxTokensPerTurn,
    });
    const { reward, metrics } = office.grade(answer, turns);
    return { reward, metrics: { ...metrics, rejected } };
  },
});

/** An answer of `I don't know` has no source to cite. */
function mayPass(text: string, office: Office): boolean {
  const answer = parseAnswer(text);
  return answer === null || answer.sources.some((id) => office.hasRead(id));
}

function mailTools(office: Office) {
  const { search, read } = TOOLS;
  return [
    tool((query) => office.search(query), {
      name: 'search',
      description: search.description,
      schema: search.input,
    }),
    tool(({ id }) => office.read(id), { name: 'read', description: read.description, schema: read.input }),
  ];
}
