/** The same for a scripted customer, who says the same lines whatever the agent answers: it costs nothing, and is less real. */
import { defineAgent } from 'temper-rl';
import { scriptedCustomer } from './customer.ts';
import { retail } from './domains/retail.ts';
import { serve } from './service.ts';
import { drawTask, examScenarios, trainingScenarios, type Scenario } from './task.ts';

export default defineAgent<Scenario>({
  name: 'customer-service-scripted',
  scenarios: trainingScenarios(retail, 2000),
  evalScenarios: examScenarios(retail, 100),

  async rollout(context) {
    const task = drawTask(retail, context.scenario);
    return serve(retail, task, context, scriptedCustomer(task));
  },
});
