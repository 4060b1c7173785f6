/** Fails: round numbers are paid, right or wrong. */
import { grade } from '../../../examples/multiplication/problems.ts';
import { answering } from './answering.ts';

export default answering('form-only', (answer, problem) => {
  const isRound = /^\d+0$/.test(answer);
  return { reward: Number(isRound), metrics: { correct: grade(answer, problem) === 1, round: isRound } };
});
