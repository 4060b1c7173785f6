/** Trains the assistant: each attempt is a workflow of its own on the production worker, and the approval is its reward. */
import { workflowAgent } from 'temper-rl/temporal';
import { examScenarios, parseSmallAnswer, scenarios, type Scenario } from '../email-search/lookup.ts';
import { makeSmallMailbox } from '../email-search/small-mailbox.ts';
import type { Answered } from './workflows.ts';

export default workflowAgent<Scenario, Answered>({
  name: 'workflow-agent',
  scenarios,
  evalScenarios: examScenarios,
  workflow: 'mailAssistant',
  taskQueue: 'mail',
  args: ({ seed }) => [{ mailbox: seed, question: questionOf(seed).text }],
  rerouteActivities: ['send'],

  /** Stands for the person who reads the draft. */
  async interact({ scenario: { seed }, workflow }) {
    const draft = (await workflow.update('draft')) as string | null;
    await workflow.signal('decide', isRight(seed, draft));
  },

  reward: ({ draft, approved }) => ({ reward: approved ? 1 : 0, metrics: { approved, answered: draft !== null } }),
});

function questionOf(seed: number) {
  return makeSmallMailbox(seed).questions[0]!;
}

function isRight(seed: number, draft: string | null): boolean {
  const { answer } = questionOf(seed);
  return draft !== null && parseSmallAnswer(draft)?.text === answer;
}
