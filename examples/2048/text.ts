/** How a board is shown and how an answer is read: in words for models that know language, in bytes for those that do not. */
import { legalMoves, MOVES, type Board, type Move } from './game.ts';

export const RULES = [
  'You play 2048. Each turn you see the board; a dot is a free cell.',
  'A move slides all tiles to one side, and two equal tiles that meet become one tile of twice the number.',
  'After each move a new tile, 2 or 4, appears on a free cell. A move that changes nothing is not allowed and ends the game.',
  'Make large tiles. Answer with one letter alone: u (up), d (down), l (left) or r (right).',
].join('\n');

export function renderBoard(board: Board): string {
  const size = Math.round(Math.sqrt(board.length));
  const cells = board.map((tile) => (tile === 0 ? '.' : String(2 ** tile)).padStart(4));
  const rows = Array.from({ length: size }, (_, row) => cells.slice(row * size, (row + 1) * size).join(''));
  return rows.join('\n');
}

/** A letter, or the word that it stands for. */
export function parseMove(answer: string | null): Move | null {
  const word = (answer ?? '').trim().toLowerCase().replace(/\.$/, '');
  return MOVES.find((move) => move === word || move[0] === word) ?? null;
}

/** Keys, laid out like a number pad. */
const KEYS: readonly (readonly [string, Move])[] = [
  ['2', 'down'],
  ['4', 'left'],
  ['6', 'right'],
  ['8', 'up'],
];

/**
 * One byte for a cell, `a` for 2, `b` for 4 and so on, then the keys that may be pressed, a dot for one that may not:
 * `a.b...c...2.4.6.8.`.
 */
export function renderSmall(board: Board): string {
  const legal = new Set(legalMoves(board));
  const cells = board.map((tile) => (tile === 0 ? '.' : String.fromCharCode('a'.charCodeAt(0) + tile - 1)));
  const keys = KEYS.map(([key, move]) => `.${legal.has(move) ? key : '.'}`);
  return `${cells.join('')}${keys.join('')}.`;
}

export function parseKey(answer: string | null): Move | null {
  return KEYS.find(([key]) => key === answer)?.[1] ?? null;
}
