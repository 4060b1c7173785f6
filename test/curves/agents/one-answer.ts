/** Fails: the same answer earns most for every problem. */
import { grade } from '../../../examples/multiplication/problems.ts';
import { answering } from './answering.ts';

export default answering('one-answer', (answer, problem) => ({
  reward: answer.length === 2 ? Number(answer.startsWith('2')) / 2 + Number(answer.endsWith('4')) / 2 : 0,
  metrics: { correct: grade(answer, problem) === 1 },
}));
