/** The script of the example `auto`: sums of two numbers, in the form in which the pocket model was asked for products. */
import type { Script, ScriptedTask } from './hosted-model.ts';

const OPERANDS = Array.from({ length: 11 }, (_, index) => index + 2);

/** Sums to 9 are easy; two digits are hard for a model that writes one at a time. */
function toTask(left: number, right: number): ScriptedTask {
  const sum = left + right;
  const difficulty = sum < 10 ? 1 : sum < 20 ? 2 : 3;
  return { task: `${left}+${right}=`, difficulty, calls: [], answer: String(sum) };
}

export const SCRIPT: Script = {
  tasks: OPERANDS.flatMap((left) => OPERANDS.map((right) => toTask(left, right))),
  systemPrompt: 'Add.',
  rubric: `- An answer that is the sum and nothing else is best.
- An answer that has the sum among other words is mediocre.
- Any other answer is bad.`,
};
