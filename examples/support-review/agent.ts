/** A support desk whose replies a reviewer scores, some time later. The rollout itself gives no reward. */
import { defineAgent, external } from 'temper-rl';
import { playTicket } from './play-ticket.ts';
import { tickets, type Scenario } from './tickets.ts';

export default defineAgent<Scenario>({
  name: 'support',
  scenarios: tickets('train', 3000),
  evalScenarios: tickets('exam', 180),
  reward: external(),

  async rollout({ scenario, openai, model }) {
    return playTicket(scenario, { openai, model });
  },
});
