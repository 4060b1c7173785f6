/** Trains the assistant: each attempt is a workflow of its own on the production worker, and the approval is its reward. */
import { workflowAgent } from 'temper-rl/temporal';
import { FIRST_EXAM_SEED, makeMailbox } from './mailbox.ts';
import { approves } from './reviewer.ts';
import type { Answered } from './workflows.ts';

interface Scenario {
  readonly id: string;
  /** Seed of the mailbox. */
  readonly seed: number;
}

export default workflowAgent<Scenario, Answered>({
  name: 'workflow-agent',
  scenarios: mailboxes(0, 4000),
  evalScenarios: mailboxes(FIRST_EXAM_SEED, 200),
  workflow: 'mailAssistant',
  taskQueue: 'mail',
  args: ({ seed }) => [{ mailbox: seed, question: makeMailbox(seed).question }],
  rerouteActivities: ['send'],

  async interact({ scenario: { seed }, workflow }) {
    const draft = (await workflow.update('draft')) as string | null;
    await workflow.signal('decide', approves(seed, draft));
  },

  reward: ({ draft, approved }) => ({ reward: approved ? 1 : 0, metrics: { approved, answered: draft !== null } }),
});

function mailboxes(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `mailbox-${firstSeed + index}`, seed: firstSeed + index }));
}
