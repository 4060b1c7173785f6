/** The multiplication table once more, played by a program in Python: `agent.py` asks the model and grades its answer. */
import { command, defineAgent } from 'temper-rl';
import { examProblems, trainingProblems, type Problem } from '../multiplication/problems.ts';

export default defineAgent<Problem>({
  name: 'python-agent',
  scenarios: trainingProblems,
  evalScenarios: examProblems,
  rollout: command(['python3', 'agent.py']),
});
