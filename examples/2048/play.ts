/** One game, whoever plays: what both agents have in common. */
import { highestTile, legalMoves, slide, startGame, type Board, type Move } from './game.ts';

export interface Scenario {
  readonly id: string;
  readonly seed: number;
}

export interface Variant {
  readonly size: number;
  /** The game ends after so many. */
  readonly turns: number;
  /** The tile that counts as a win. */
  readonly goal: number;
  /** Points of a good game. */
  readonly par: number;
}

/** Null for an answer that is no move at all. */
export type Player = (board: Board, turn: number) => Promise<Move | null>;

export async function playGame({ seed }: Scenario, variant: Variant, player: Player) {
  const { board: first, spawn } = startGame(seed, variant.size);
  let board = first;
  let points = 0;
  for (let turn = 0; turn < variant.turns; turn++) {
    const legal = legalMoves(board);
    if (legal.length === 0) return result(variant, board, { points, turn });
    const move = await player(board, turn);
    if (move === null || !legal.includes(move)) return result(variant, board, { points, turn, illegal: true });
    const moved = slide(board, move);
    points += moved.points;
    board = spawn(moved.board, turn);
  }
  return result(variant, board, { points, turn: variant.turns });
}

/** Half for staying in the game, half for points: there is something to tell attempts apart from the first move on. */
function result(
  { turns, par, goal }: Variant,
  board: Board,
  { points, turn, illegal = false }: { points: number; turn: number; illegal?: boolean },
) {
  const highest = highestTile(board);
  const reward = 0.5 * (turn / turns) + 0.5 * Math.min(1, points / par);
  return { reward, metrics: { win: highest >= goal, illegal, highest, points, moves: turn } };
}

export function games(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `game-${firstSeed + index}`, seed: firstSeed + index }));
}
