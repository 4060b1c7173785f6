/** Serves the customers of an airline: the same agent on other data. */
import { defineAgent, frozen, policy } from 'temper-rl';
import { modelledCustomer } from './customer.ts';
import { airline } from './domains/airline.ts';
import { serve } from './service.ts';
import { drawTask, examScenarios, trainingScenarios } from './task.ts';

export default defineAgent({
  name: 'customer-service-airline',
  scenarios: trainingScenarios(airline, 2000),
  evalScenarios: examScenarios(airline, 100),
  roles: { agent: policy(), customer: frozen('openai/gpt-5-mini') },

  async rollout({ scenario, roles }) {
    const task = drawTask(airline, scenario);
    const { reward, metrics } = await serve(airline, task, roles.agent, modelledCustomer(roles.customer, task));
    return { roleRewards: { agent: reward }, metrics };
  },
});
