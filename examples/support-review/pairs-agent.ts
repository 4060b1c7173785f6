/** The same desk, whose replies reviewers compare two at a time. */
import { defineAgent, review } from 'temper-rl';
import { playTicket } from './play-ticket.ts';
import { tickets, type Scenario } from './tickets.ts';

export default defineAgent<Scenario>({
  name: 'support-pairs',
  scenarios: tickets('train', 3000),
  evalScenarios: tickets('exam', 180),
  reward: review({ pairwise: true, question: 'Which reply would you rather get?' }),

  async rollout({ scenario, openai, model }) {
    return playTicket(scenario, { openai, model });
  },
});
