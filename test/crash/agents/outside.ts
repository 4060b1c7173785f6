/** The twin of `inside.ts`, in a process of its own. */
import { command, defineAgent } from 'temper-rl';
import { questions, type Questions } from './questions.ts';

export default defineAgent<Questions>({
  name: 'outside',
  scenarios: questions('train', 24),
  evalScenarios: questions('eval', 2),
  rollout: command(['python3', 'outside.py'], { concurrency: 4 }),
});
