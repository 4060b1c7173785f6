/** Trains the assistant: each attempt is a workflow of its own on the production worker, and the approval is its reward. */
import { workflowAgent } from 'temper-rl/temporal';
import { examScenarios, scenarios, type Scenario } from '../email-search/lookup.ts';
import { approves, questionOf } from './reviewer.ts';
import type { Answered } from './workflows.ts';

export default workflowAgent<Scenario, Answered>({
  name: 'workflow-agent',
  scenarios,
  evalScenarios: examScenarios,
  workflow: 'mailAssistant',
  taskQueue: 'mail',
  args: ({ seed }) => [{ mailbox: seed, question: questionOf(seed) }],
  rerouteActivities: ['send'],

  async interact({ scenario: { seed }, workflow }) {
    const draft = (await workflow.update('draft')) as string | null;
    await workflow.signal('decide', approves(seed, draft));
  },

  reward: ({ draft, approved }) => ({ reward: approved ? 1 : 0, metrics: { approved, answered: draft !== null } }),
});
