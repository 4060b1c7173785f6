/** Learns to answer questions about a mailbox: search, read, answer, and say which mails tell it. */
import { defineAgent, tool, toolLoop } from 'temper-rl';
import { EDITION, examScenarios, Office, scenarios, TASK, TOOLS, type Scenario } from './office.ts';

export default defineAgent<Scenario>({
  name: 'email-search',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const office = new Office(context.scenario);
    const { answer, turns } = await toolLoop(context, {
      messages: [
        { role: 'system', content: TASK },
        { role: 'user', content: office.question },
      ],
      tools: mailTools(office),
      maxTurns: EDITION.maxTurns,
      maxTokensPerTurn: EDITION.maxTokensPerTurn,
    });
    return office.grade(answer, turns);
  },
});

function mailTools(office: Office) {
  const { search, read } = TOOLS;
  return [
    tool({
      name: 'search',
      description: search.description,
      parameters: search.input,
      run: (query) => office.search(query),
    }),
    tool({ name: 'read', description: read.description, parameters: read.input, run: ({ id }) => office.read(id) }),
  ];
}
