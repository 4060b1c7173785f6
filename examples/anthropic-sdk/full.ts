/** The full edition, for a real model: an office's mailbox, with Anthropic's SDK and tools in zod. */
import type Anthropic from '@anthropic-ai/sdk';
import { defineAgent } from 'temper-rl';
import { z } from 'zod';
import { EDITION, examScenarios, Office, scenarios, TASK, TOOLS, type Scenario } from '../email-search/office.ts';
import { converse } from './converse.ts';

const tools = Object.entries(TOOLS).map(([name, { description, input }]): Anthropic.Tool => {
  return { name, description, input_schema: { ...z.toJSONSchema(input), type: 'object' } };
});

export default defineAgent<Scenario>({
  name: 'anthropic-sdk-full',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const office = new Office(context.scenario);
    const { answer, turns } = await converse(context, {
      system: TASK,
      question: office.question,
      tools,
      run: (name, input) => run(office, name, input),
      maxTurns: EDITION.maxTurns,
      maxTokensPerTurn: EDITION.maxTokensPerTurn,
    });
    return office.grade(answer, turns);
  },
});

function run(office: Office, name: string, input: unknown): string {
  if (name === 'search') return office.search(TOOLS.search.input.parse(input));
  if (name === 'read') return office.read(TOOLS.read.input.parse(input).id);
  throw new Error(`there is no tool ${name}`);
}
