/** Serves the customers of an online shop, whom a hosted model plays. */
import { defineAgent, frozen, policy } from 'temper-rl';
import { modelledCustomer } from './customer.ts';
import { retail } from './domains/retail.ts';
import { serve } from './service.ts';
import { drawTask, examScenarios, trainingScenarios } from './task.ts';

export default defineAgent({
  name: 'customer-service',
  scenarios: trainingScenarios(retail, 2000),
  evalScenarios: examScenarios(retail, 100),
  roles: { agent: policy(), customer: frozen('openai/gpt-5-mini') },

  async rollout({ scenario, roles }) {
    const task = drawTask(retail, scenario);
    const { reward, metrics } = await serve(retail, task, roles.agent, modelledCustomer(roles.customer, task));
    return { roleRewards: { agent: reward }, metrics };
  },
});
