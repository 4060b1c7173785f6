/** A small board in nine bytes, for a model that knows no words: digits are what it may answer. */
import { fittingClues, SMALL_CLUES } from './small-boards.ts';
import type { Board, Clue, Owner } from './game.ts';

const MARKS: Readonly<Record<Owner, string>> = { team: 'o', assassin: 'x', neutral: 'a' };

/** The owners of the five words, then the clues: a clue's digit if it fits, else `x`. Such as `oxa.o6x8x`. */
export function renderForSpymaster(board: Board): string {
  const fitting = fittingClues(board);
  const owners = board.map(({ owner, isCovered }) => (isCovered ? '.' : MARKS[owner]));
  const clues = SMALL_CLUES.map((clue) => (fitting.includes(clue) ? clue : 'x'));
  return [...owners, ...clues].join('');
}

/** The clue, then the words that can be named, such as `8123.5x`. */
export function renderForGuesser(board: Board, { word }: Clue): string {
  return `${word}${board.map((card) => (card.isCovered ? '.' : card.word)).join('')}x`;
}
