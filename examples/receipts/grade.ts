/** The reward of an answer about a receipt. */
import type { Receipt } from './receipts.ts';

export interface Grade {
  readonly reward: number;
  /** The number alone, as a program could read it. */
  readonly correct: boolean;
  /** The number is somewhere in the answer. */
  readonly mentioned: boolean;
  readonly words: number;
}

/** Reward of an answer that is the number alone, and of one with a single other word. */
const ALONE = 1;
const WITH_A_WORD = 0.6;
const COST_OF_A_WORD = 0.05;
/** Reward of an answer with the number in it, however long it is. */
const LEAST = 0.1;

/**
 * An untrained model never says the number alone, so a reward for that alone would never be paid. It does mention the
 * number in a sentence. So the number pays, and each word beside it costs. The last one costs most: an answer that is
 * sampled once in a thousand times must be worth the change.
 */
export function grade(answer: string, { euros }: Receipt): Grade {
  const said = answer.trim();
  const words = said === '' ? 0 : said.split(/\s+/).length;
  const mentioned = new RegExp(`\\b${euros}\\b`).test(said);
  return {
    reward: mentioned ? payFor(words) : 0,
    correct: said.replace(/\.$/, '') === String(euros),
    mentioned,
    words,
  };
}

function payFor(words: number): number {
  return words === 1 ? ALONE : Math.max(LEAST, WITH_A_WORD - COST_OF_A_WORD * (words - 2));
}
