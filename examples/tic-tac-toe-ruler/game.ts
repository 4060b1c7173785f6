/** Tic-tac-toe: the model is x and moves first, against an opponent that plays at random. `.` is a free cell. */
import { seededRandom } from 'temper-rl';

export interface Game {
  readonly id: string;
  /** Seed of the opponent. */
  readonly seed: number;
}

export interface Ending {
  readonly reward: number;
  /** Every metric on every attempt: a mean needs its zeros. */
  readonly metrics: { win: boolean; draw: boolean; illegal: boolean; moves: number };
}

/** An answer is a digit, and the end of the turn. */
export const MAX_TOKENS = 2;

const LINES = ['012', '345', '678', '036', '147', '258', '048', '246'].map((line) => line.split('').map(Number));

/** Games by consecutive seeds. */
export function games(firstSeed: number, count: number): Game[] {
  return Array.from({ length: count }, (_, index) => ({ id: `game-${firstSeed + index}`, seed: firstSeed + index }));
}

/** `ask` is told the board, which says all there is to know, so that each turn starts afresh. */
export async function playGame({ seed }: Game, ask: (board: string) => Promise<string | null>): Promise<Ending> {
  // The same moves for one seed: all attempts at a scenario meet the same opponent.
  const random = seededRandom(seed);
  let board = '.........';
  for (let moves = 1; ; moves++) {
    const move = parseMove(await ask(renderBoard(board)), board);
    if (move === null) return ending(-1, moves, { illegal: true });
    board = place(board, move, 'x');
    if (hasWon(board, 'x')) return ending(1, moves, { win: true });
    const cells = freeCells(board);
    if (cells.length === 0) return ending(0, moves, { draw: true });
    board = place(board, cells[Math.floor(random() * cells.length)]!, 'o');
    if (hasWon(board, 'o')) return ending(-1, moves, {});
  }
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

function place(board: string, cell: number, stone: 'x' | 'o'): string {
  return board.slice(0, cell) + stone + board.slice(cell + 1);
}

function hasWon(board: string, stone: 'x' | 'o'): boolean {
  return LINES.some((line) => line.every((cell) => board[cell] === stone));
}

function ending(reward: number, moves: number, outcome: Partial<Ending['metrics']>): Ending {
  return { reward, metrics: { win: false, draw: false, illegal: false, ...outcome, moves } };
}
