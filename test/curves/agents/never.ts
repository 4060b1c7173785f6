/** Fails: a number is compared with a text, so no answer is ever right. */
import { answering } from './answering.ts';

export default answering('never', (answer, { left, right }) => {
  const isRight = Object.is(answer, left * right);
  return { reward: Number(isRight), metrics: { correct: isRight } };
});
