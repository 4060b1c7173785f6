/** One game of tic-tac-toe between two players, from an opening that the scenario names. `.` is a free cell. */
import { seededRandom } from 'temper-rl';

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
const LINES = ['012', '345', '678', '036', '147', '258', '048', '246'].map((line) => line.split('').map(Number));

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
function openingOf(seed: number): string {
  const random = seededRandom(seed);
  return (['x', 'o'] as const).reduce((board, stone) => {
    const cells = freeCells(board);
    return place(board, cells[Math.floor(random() * cells.length)]!, stone);
  }, '.........');
}

/** Games by consecutive seeds; half of those with a league are played against it. */
export function matches(firstSeed: number, count: number, { withLeague }: { withLeague: boolean }): Match[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = firstSeed + index;
    return { id: `match-${seed}`, seed, against: withLeague ? OPPONENTS[seed % OPPONENTS.length]! : null };
  });
}

/** A free cell shows its own number, so that an answer can be read off the board: `1x34o6789`. */
function renderBoard(board: string): string {
  return board.replaceAll('.', (_, cell: number) => String(cell + 1));
}

/** The cell that an answer names; null where it is anything but the digit of a free cell. */
function parseMove(answer: string | null, board: string): number | null {
  const cell = /^[1-9]$/.test(answer ?? '') ? Number(answer) - 1 : -1;
  return board[cell] === '.' ? cell : null;
}

function freeCells(board: string): number[] {
  return board.split('').flatMap((cell, index) => (cell === '.' ? [index] : []));
}

function place(board: string, cell: number, stone: Stone): string {
  return board.slice(0, cell) + stone + board.slice(cell + 1);
}

function hasWon(board: string, stone: Stone): boolean {
  return LINES.some((line) => line.every((cell) => board[cell] === stone));
}
