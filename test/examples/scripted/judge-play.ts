/** The scripted judge's opinion of a game in a conversation: by its own eyes, and nobody's word for the result. */
import { EMPTY_BOARD, freeCells, hasWon, parseMove, place, type Board } from '../../../examples/tic-tac-toe/game.ts';
import type { ReadMessage } from './read-prompt.ts';

export interface Opinion {
  readonly score: number;
  readonly explanation: string;
}

interface Turn {
  readonly board: Board;
  readonly answer: string;
}

/**
 * How a game ended is all that counts. What was overlooked on the way is said and costs nothing: where every attempt of a
 * group has won, it would be all that tells them apart, and the model would be trained on trifles.
 */
const WORTH = { won: 1, drawn: 0.5, lost: 0, illegal: 0 } as const;

/** An opinion of a game by its messages; each answer stands after its board, and the turns in any order. */
export function judgePlay(messages: readonly ReadMessage[]): Opinion {
  const turns = turnsOf(messages);
  const last = turns.at(-1);
  if (last === undefined) return { score: 0, explanation: 'I see no game.' };
  const ending = endingOf(last);
  const faults = turns.map(faultOf).filter((fault) => fault !== null);
  const said = [`${SAID[ending]} with the answer ${JSON.stringify(last.answer)} in turn ${turns.length}`, ...faults];
  return { score: WORTH[ending], explanation: `${said.join('; ')}.` };
}

const SAID = {
  won: 'Completes a line',
  drawn: 'Fills the board',
  lost: 'Leaves the opponent a line',
  illegal: 'Makes no legal move',
} as const;

/** In the order of play, which the boards themselves tell: each turn leaves fewer cells. */
function turnsOf(messages: readonly ReadMessage[]): Turn[] {
  const turns = messages.flatMap(({ role, content }, index) => {
    const board = role === 'user' ? parseBoard(content) : null;
    const next = messages[index + 1];
    return board === null || next?.role !== 'assistant' ? [] : [{ board, answer: next.content }];
  });
  return turns.toSorted((left, right) => freeCells(right.board).length - freeCells(left.board).length);
}

/** A board as `renderBoard` writes it; null for any other text. */
export function parseBoard(text: string): Board | null {
  if (text.length !== EMPTY_BOARD.length) return null;
  const cells = text.split('').map((cell, index) => (cell === String(index + 1) ? '.' : cell));
  return cells.every((cell) => 'xo.'.includes(cell)) ? cells.join('') : null;
}

/** A game goes on until it is decided: an answer that did not decide it, and after which nothing was asked, was its loss. */
function endingOf({ board, answer }: Turn): keyof typeof WORTH {
  const move = parseMove(answer, board);
  if (move === null) return 'illegal';
  const after = place(board, move, 'x');
  if (hasWon(after, 'x')) return 'won';
  return freeCells(after).length === 0 ? 'drawn' : 'lost';
}

function faultOf({ board, answer }: Turn, index: number): string | null {
  const move = parseMove(answer, board);
  if (move === null) return null;
  const wins = winningCells(board, 'x');
  if (wins.length > 0) return wins.includes(move) ? null : `overlooks a win in turn ${index + 1}`;
  const threats = winningCells(board, 'o');
  return threats.length === 0 || threats.includes(move) ? null : `leaves a threat open in turn ${index + 1}`;
}

function winningCells(board: Board, stone: 'x' | 'o'): number[] {
  return freeCells(board).filter((cell) => hasWon(place(board, cell, stone), stone));
}
