/** The multiplication table, played by a program in Python: `agent.py` asks the model and grades its answer. */
import { command, defineAgent } from 'temper-rl';

interface Problem {
  readonly id: string;
  readonly left: number;
  readonly right: number;
}

const OPERANDS = Array.from({ length: 11 }, (_, index) => index + 2);
const ALL = OPERANDS.flatMap((left) => OPERANDS.map((right) => ({ id: `${left}x${right}`, left, right })));
/** About a quarter of the table. Both orders go together: 8×7 would give 7×8 away. */
const isHeldOut = ({ left, right }: Problem) => (left + right) % 4 === 3;
/** Each held-out problem several times: a model that samples its answers knows a product more or less. */
const EXAM_ROUNDS = [1, 2, 3, 4, 5];

export default defineAgent<Problem>({
  name: 'python-agent',
  scenarios: ALL.filter((problem) => !isHeldOut(problem)),
  evalScenarios: EXAM_ROUNDS.flatMap((round) =>
    ALL.filter(isHeldOut).map((problem) => ({ ...problem, id: `${problem.id}-${round}` })),
  ),
  rollout: command(['python3', 'agent.py']),
});
