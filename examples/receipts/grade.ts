/** What an answer about a receipt is worth. */
import type { Receipt } from './receipts.ts';

export interface Grade {
  readonly reward: number;
  /** The number alone, as a program could read it. */
  readonly correct: boolean;
  /** The number is somewhere in the answer. */
  readonly mentioned: boolean;
  readonly words: number;
}

const COST_OF_A_WORD = 0.1;
/** Of an answer with the number in it, however long it is. */
const LEAST = 0.2;

/**
 * An untrained model never says the number alone, so a reward for that alone would never be paid. It does mention the
 * number in a sentence. So the number pays, and each word beside it costs.
 */
export function grade(answer: string, { euros }: Receipt): Grade {
  const said = answer.trim();
  const words = said === '' ? 0 : said.split(/\s+/).length;
  const mentioned = new RegExp(`\\b${euros}\\b`).test(said);
  return {
    reward: mentioned ? Math.max(LEAST, 1 - COST_OF_A_WORD * (words - 1)) : 0,
    correct: said.replace(/\.$/, '') === String(euros),
    mentioned,
    words,
  };
}
