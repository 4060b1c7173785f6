/** One game of tic-tac-toe between two players, from an opening that the scenario names. */
import { seededRandom } from 'temper-rl';
import { EMPTY_BOARD, freeCells, hasWon, parseMove, place, renderBoard, type Board } from '../tic-tac-toe/game.ts';

export type Stone = 'x' | 'o';

export interface Match {
  readonly id: string;
  /** Seed of the opening. */
  readonly seed: number;
  /** The side that a league plays; null: x and o of the run play each other. */
  readonly against: 'past-x' | 'past-o' | null;
}

export interface MatchEnding {
  /** Null after a draw. */
  readonly winner: Stone | null;
  /** Every metric on every attempt: a mean needs its zeros. */
  readonly metrics: { readonly draw: boolean; readonly illegal: boolean; readonly moves: number };
}

/** An answer is a digit, and the end of the turn. */
export const MAX_TOKENS = 2;
const OPPONENTS = [null, null, 'past-o', 'past-x'] as const;

/** An illegal move loses the game. */
export async function playMatch(
  { seed }: Match,
  ask: (stone: Stone, board: string) => Promise<string | null>,
): Promise<MatchEnding> {
  let board = openingOf(seed);
  for (let moves = 1; ; moves++) {
    const stone: Stone = freeCells(board).length % 2 === 1 ? 'x' : 'o';
    const other: Stone = stone === 'x' ? 'o' : 'x';
    const move = parseMove(await ask(stone, renderBoard(board)), board);
    if (move === null) return { winner: other, metrics: { draw: false, illegal: true, moves } };
    board = place(board, move, stone);
    if (hasWon(board, stone)) return { winner: stone, metrics: { draw: false, illegal: false, moves } };
    if (freeCells(board).length === 0) return { winner: null, metrics: { draw: true, illegal: false, moves } };
  }
}

/** A stone of each side, so that games differ before anybody has learned anything. */
function openingOf(seed: number): Board {
  const random = seededRandom(seed);
  return (['x', 'o'] as const).reduce((board, stone) => {
    const cells = freeCells(board);
    return place(board, cells[Math.floor(random() * cells.length)]!, stone);
  }, EMPTY_BOARD);
}

/** Matches of consecutive seeds; half of the games with a league are played against it. */
export function matches(firstSeed: number, count: number, { withLeague }: { withLeague: boolean }): Match[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = firstSeed + index;
    return { id: `match-${seed}`, seed, against: withLeague ? OPPONENTS[seed % OPPONENTS.length]! : null };
  });
}
