/** One game of x, who moves first, against an opponent that plays at random. */
import { EMPTY_BOARD, freeCells, hasWon, parseMove, place, randomOpponent, renderBoard } from './game.ts';

export interface Game {
  readonly id: string;
  /** Seed of the opponent. */
  readonly seed: number;
}

export interface Ending {
  readonly reward: number;
  /** Every metric on every attempt: a mean needs its zeros. */
  readonly metrics: {
    readonly win: boolean;
    readonly draw: boolean;
    readonly illegal: boolean;
    readonly moves: number;
  };
}

/** An answer is a digit, and the end of the turn. */
export const MAX_TOKENS = 2;

/** `ask` is told the board, which says all there is to know, so that each turn starts afresh. */
export async function playGame({ seed }: Game, ask: (board: string) => Promise<string | null>): Promise<Ending> {
  const opponent = randomOpponent(seed);
  let board = EMPTY_BOARD;
  for (let moves = 1; ; moves++) {
    const move = parseMove(await ask(renderBoard(board)), board);
    if (move === null) return ending(-1, moves, { illegal: true });
    board = place(board, move, 'x');
    if (hasWon(board, 'x')) return ending(1, moves, { win: true });
    if (freeCells(board).length === 0) return ending(0, moves, { draw: true });
    board = place(board, opponent(board), 'o');
    if (hasWon(board, 'o')) return ending(-1, moves, {});
  }
}

/** Games by consecutive seeds. */
export function games(firstSeed: number, count: number): Game[] {
  return Array.from({ length: count }, (_, index) => ({ id: `game-${firstSeed + index}`, seed: firstSeed + index }));
}

function ending(reward: number, moves: number, outcome: { win?: true; draw?: true; illegal?: true }): Ending {
  return { reward, metrics: { win: false, draw: false, illegal: false, ...outcome, moves } };
}
