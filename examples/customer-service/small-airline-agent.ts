/** An airline desk in as few bytes: the same agent on other data. */
import { defineAgent } from 'temper-rl';
import { smallAirline } from './domains/small.ts';
import { playByKeys } from './keys.ts';
import { examScenarios, trainingScenarios, type Scenario } from './task.ts';

export default defineAgent<Scenario>({
  name: 'customer-service-small-airline',
  scenarios: trainingScenarios(smallAirline, 4500),
  evalScenarios: examScenarios(smallAirline, 180),

  async rollout({ scenario, openai, model }) {
    return playByKeys(smallAirline, scenario, { openai, model });
  },
});
