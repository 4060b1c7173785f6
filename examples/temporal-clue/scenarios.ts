/** The puzzles as texts, split so that nothing asked in the exam is trained on, in whatever order its clues stand. */
import { seededRandom } from 'temper-rl';
import { makePuzzle, type Clue, type Puzzle } from './puzzle.ts';

export interface Scenario {
  readonly id: string;
  readonly text: string;
  /** Number of a guest, from 0. */
  readonly answer: number;
}

/** There are about a thousand different puzzles, so a far seed alone would not do. */
const EXAM_SHARE = 0.2;

/** Made when they are asked for: an agent file is loaded more often than it is prepared. */
export function* trainingPuzzles(count: number): Generator<Scenario> {
  for (let seed = 0, found = 0; found < count; seed++) {
    const puzzle = makePuzzle(seed);
    if (isHeldOut(puzzle)) continue;
    found += 1;
    yield toScenario(puzzle, seed);
  }
}

/** Each puzzle once. */
export function* examPuzzles(count: number): Generator<Scenario> {
  const known = new Set<string>();
  for (let seed = 1_000_000; known.size < count; seed++) {
    const puzzle = makePuzzle(seed);
    const key = keyOf(puzzle);
    if (!isHeldOut(puzzle) || known.has(key)) continue;
    known.add(key);
    yield toScenario(puzzle, seed);
  }
}

/** The same for the same clues in another order. */
function keyOf({ clues, ...others }: Puzzle): string {
  return render({ ...others, clues: clues.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) });
}

function isHeldOut(puzzle: Puzzle): boolean {
  return seededRandom('exam', keyOf(puzzle))() < EXAM_SHARE;
}

function toScenario(puzzle: Puzzle, seed: number): Scenario {
  return { id: `puzzle-${seed}`, text: render(puzzle), answer: puzzle.answer };
}

const SIGNS: Readonly<Record<Clue['kind'], string>> = { at: '+', 'not-at': '-', stayed: '=', moved: '!' };

/**
 * Four bytes for a clue: guest 1 was in room a at hour p (`1ap+`) or was not (`1ap-`), stayed from p to q (`1pq=`) or
 * moved (`1pq!`). Then the question: who was in room c at hour q, when it happened there (`?cq`).
 */
function render({ clues, room, hour }: Puzzle): string {
  const told = clues.map((clue) => `${clue.guest + 1}${'room' in clue ? placeOf(clue) : 'pq'}${SIGNS[clue.kind]}`);
  return `${told.join('')}?${placeOf({ room, hour })}`;
}

function placeOf({ room, hour }: { room: number; hour: number }): string {
  return `${'abc'[room]}${'pq'[hour]}`;
}
