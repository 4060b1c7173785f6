/** Learns to solve logic puzzles: clues about an evening, and one line that says who did it, where, when and with what. */
import { defineAgent } from 'temper-rl';
import { FULL } from './edition.ts';
import { makePuzzle, type Puzzle } from './puzzle.ts';
import { grade, renderPuzzle } from './text.ts';

interface Scenario {
  readonly id: string;
  readonly seed: number;
}

export default defineAgent<Scenario>({
  name: 'temporal-clue',
  scenarios: puzzles(0, 2000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: puzzles(1_000_000, 100),

  async rollout({ scenario, openai, model }) {
    const puzzle = recall(scenario.seed);
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: renderPuzzle(puzzle) }],
      max_tokens: 1024, // it may think before its last line
    });
    const reward = grade(completion.choices[0]?.message.content ?? null, puzzle.answer);
    return { reward, metrics: { solved: reward === 1 } };
  },
});

function puzzles(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `puzzle-${firstSeed + index}`, seed: firstSeed + index }));
}

/** A puzzle takes a tenth of a second to make: the attempts of a group share theirs. */
const made = new Map<number, Puzzle>();
const KEPT = 100;

function recall(seed: number): Puzzle {
  const puzzle = made.get(seed) ?? makePuzzle(FULL, seed);
  made.set(seed, puzzle);
  const [oldest] = made.keys();
  if (made.size > KEPT && oldest !== undefined) made.delete(oldest);
  return puzzle;
}
