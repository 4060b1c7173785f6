/** A shop's desk in so few bytes that the pocket model can serve it: with the same engine, and keys in place of calls. */
import { defineAgent } from 'temper-rl';
import { smallRetail } from './domains/small.ts';
import { playByKeys } from './keys.ts';
import { examScenarios, trainingScenarios, type Scenario } from './task.ts';

export default defineAgent<Scenario>({
  name: 'customer-service-small',
  scenarios: trainingScenarios(smallRetail, 4500),
  evalScenarios: examScenarios(smallRetail, 180),

  async rollout({ scenario, openai, model }) {
    return playByKeys(smallRetail, scenario, { openai, model });
  },
});
