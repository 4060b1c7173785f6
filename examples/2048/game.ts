/** The rules of 2048 on a square board of any size. A cell holds the power of two that stands on it; 0 is a free cell. */
import { seededRandom } from 'temper-rl';

export type Board = readonly number[];

export const MOVES = ['up', 'down', 'left', 'right'] as const;
export type Move = (typeof MOVES)[number];

export interface Slide {
  readonly board: Board;
  /** The sum of the tiles that were made. */
  readonly points: number;
}

/** Every fourth tile or so is a 4. */
const FOURS = 0.25;

export function slide(board: Board, move: Move): Slide {
  const size = sizeOf(board);
  const cells = [...board];
  let points = 0;
  for (let line = 0; line < size; line++) {
    const places = placesOf(line, move, size);
    const merged = merge(places.map((place) => board[place]!));
    places.forEach((place, index) => (cells[place] = merged.tiles[index] ?? 0));
    points += merged.points;
  }
  return { board: cells, points };
}

/** Moves that change the board; the game is over where there are none. */
export function legalMoves(board: Board): Move[] {
  return MOVES.filter((move) => slide(board, move).board.some((tile, place) => tile !== board[place]));
}

export function highestTile(board: Board): number {
  return 2 ** Math.max(...board);
}

/**
 * The tiles of one game. What appears depends on seed, turn and the free cells alone, so that all attempts at a
 * scenario have the same luck: what differs between them is what the model did.
 */
export function startGame(seed: number, size: number): { board: Board; spawn: (board: Board, turn: number) => Board } {
  const spawn = (board: Board, turn: number): Board => {
    const random = seededRandom(seed, turn);
    const free = board.flatMap((tile, place) => (tile === 0 ? [place] : []));
    const chosen = free[Math.floor(random() * free.length)];
    const tile = random() < FOURS ? 2 : 1;
    return board.map((old, place) => (place === chosen ? tile : old));
  };
  const empty: Board = Array.from({ length: size * size }, () => 0);
  return { board: spawn(spawn(empty, -2), -1), spawn };
}

/** The cells of a row or column, from the edge that the tiles slide to. */
function placesOf(line: number, move: Move, size: number): number[] {
  const isRow = move === 'left' || move === 'right';
  const places = Array.from({ length: size }, (_, index) => (isRow ? line * size + index : index * size + line));
  return move === 'left' || move === 'up' ? places : places.toReversed();
}

/** Each tile merges once, the pair nearest to the edge first. */
function merge(line: readonly number[]): { tiles: number[]; points: number } {
  const tiles: number[] = [];
  let points = 0;
  let canMerge = false;
  for (const tile of line.filter((each) => each !== 0)) {
    if (canMerge && tiles.at(-1) === tile) {
      tiles[tiles.length - 1] = tile + 1;
      points += 2 ** (tile + 1);
      canMerge = false;
    } else {
      tiles.push(tile);
      canMerge = true;
    }
  }
  return { tiles, points };
}

function sizeOf(board: Board): number {
  return Math.round(Math.sqrt(board.length));
}
