/** The small edition's puzzles, split so that nothing asked in the exam is trained on, in whatever order its clues stand. */
import { seededRandom } from 'temper-rl';
import { SMALL } from './edition.ts';
import { makePuzzle, type Answer, type Puzzle } from './puzzle.ts';
import { renderSmall } from './text.ts';

export interface SmallScenario {
  readonly id: string;
  readonly text: string;
  readonly answer: Answer;
}

/** There are about a thousand different puzzles, so a far seed alone would not do. */
const EXAM_SHARE = 0.2;

/** Made when they are asked for: an agent file is loaded more often than it is prepared. */
export function* trainingPuzzles(count: number): Generator<SmallScenario> {
  for (let seed = 0, found = 0; found < count; seed++) {
    const puzzle = makePuzzle(SMALL, seed);
    if (isHeldOut(puzzle)) continue;
    found += 1;
    yield toScenario(puzzle, seed);
  }
}

/** Each puzzle once. */
export function* examPuzzles(count: number): Generator<SmallScenario> {
  const known = new Set<string>();
  for (let seed = 1_000_000; known.size < count; seed++) {
    const puzzle = makePuzzle(SMALL, seed);
    const key = keyOf(puzzle);
    if (!isHeldOut(puzzle) || known.has(key)) continue;
    known.add(key);
    yield toScenario(puzzle, seed);
  }
}

/** The same for the same clues in another order. */
export function keyOf({ clues, answer }: Puzzle): string {
  return renderSmall({ answer, clues: clues.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) });
}

function isHeldOut(puzzle: Puzzle): boolean {
  return seededRandom('exam', keyOf(puzzle))() < EXAM_SHARE;
}

function toScenario(puzzle: Puzzle, seed: number): SmallScenario {
  return { id: `puzzle-${seed}`, text: renderSmall(puzzle), answer: puzzle.answer };
}
