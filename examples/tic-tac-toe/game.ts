/** The rules of tic-tac-toe. A board is nine characters: `x`, `o`, or `.` for a free cell. */
import { seededRandom } from 'temper-rl';

export type Board = string;

export const EMPTY_BOARD: Board = '.........';

const LINES = ['012', '345', '678', '036', '147', '258', '048', '246'].map((line) => line.split('').map(Number));

/** A free cell shows its own number, so that an answer can be read off the board: `1x34o6789`. */
export function renderBoard(board: Board): string {
  return board
    .split('')
    .map((cell, index) => (cell === '.' ? String(index + 1) : cell))
    .join('');
}

export function freeCells(board: Board): number[] {
  return board.split('').flatMap((cell, index) => (cell === '.' ? [index] : []));
}

export function place(board: Board, cell: number, stone: 'x' | 'o'): Board {
  return board.slice(0, cell) + stone + board.slice(cell + 1);
}

export function hasWon(board: Board, stone: 'x' | 'o'): boolean {
  return LINES.some((line) => line.every((cell) => board[cell] === stone));
}

/** The cell that an answer names, or null where it is anything but the digit of a free cell. */
export function parseMove(answer: string | null, board: Board): number | null {
  if (answer === null || !/^[1-9]$/.test(answer)) return null;
  const cell = Number(answer) - 1;
  return board[cell] === '.' ? cell : null;
}

/** Plays uniformly at random, but always the same for one seed: all attempts at a scenario meet the same opponent. */
export function randomOpponent(seed: number): (board: Board) => number {
  const random = seededRandom(seed);
  return (board) => {
    const cells = freeCells(board);
    return cells[Math.floor(random() * cells.length)]!;
  };
}
