/** Tic-tac-toe by an agent that answers every error with a reward: an outage must not become data through it. */
import { defineAgent, type RolloutContext } from 'temper-rl';
import ticTacToe from '../../../examples/tic-tac-toe/agent.ts';

type Scenario = RolloutContext<{ id: string; seed: number }>['scenario'];

export default defineAgent<Scenario>({
  name: 'swallowing',
  scenarios: ticTacToe.scenarios,
  ...(ticTacToe.evalScenarios === undefined ? {} : { evalScenarios: ticTacToe.evalScenarios }),
  async rollout(context) {
    try {
      return await ticTacToe.rollout(context);
    } catch {
      return { reward: 0, metrics: { win: false, draw: false, illegal: false, moves: 0 } };
    }
  },
});
