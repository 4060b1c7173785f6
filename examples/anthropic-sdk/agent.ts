/** Looks a word up in a mailbox, with Anthropic's SDK. */
import type Anthropic from '@anthropic-ai/sdk';
import { defineAgent } from 'temper-rl';
import { EDITION, examScenarios, Lookup, scenarios, type Scenario } from '../email-search/lookup.ts';
import { converse } from './converse.ts';

const tools: Anthropic.Tool[] = [
  {
    name: 'search',
    description: 'Ids of what has the word.',
    input_schema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  },
  {
    name: 'read',
    description: 'The text of an id.',
    input_schema: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] },
  },
];

export default defineAgent<Scenario>({
  name: 'anthropic-sdk',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const mailbox = new Lookup(context.scenario);
    const { answer, turns } = await converse(context, {
      question: mailbox.question,
      tools,
      run: (name, input) => run(mailbox, name, input),
      maxTurns: EDITION.maxTurns,
      maxTokensPerTurn: EDITION.maxTokensPerTurn,
    });
    return mailbox.grade(answer, turns);
  },
});

function run(mailbox: Lookup, name: string, input: unknown): string {
  const { query, id } = (input ?? {}) as { query?: unknown; id?: unknown };
  if (name === 'search') return mailbox.search(String(query));
  if (name === 'read') return mailbox.read(Number(id));
  throw new Error(`there is no tool ${name}`);
}
