/** The rules of Codenames for one team: a spymaster who knows whose each word is, and a guesser who does not. */

export type Owner = 'team' | 'neutral' | 'assassin';

export interface Card {
  readonly word: string;
  readonly owner: Owner;
  readonly isCovered: boolean;
}

export type Board = readonly Card[];

export interface Clue {
  readonly word: string;
  /** How many words the guesser may name. */
  readonly number: number;
}

/** The words that can still be named. */
export function openWords(board: Board): string[] {
  return board.filter(({ isCovered }) => !isCovered).map(({ word }) => word);
}

/** How many words of one owner are open. */
export function countOpen(board: Board, owner: Owner): number {
  return board.filter((card) => card.owner === owner && !card.isCovered).length;
}

export function cover(board: Board, word: string): Board {
  return board.map((card) => (card.word === word ? { ...card, isCovered: true } : card));
}

export function ownerOf(board: Board, word: string): Owner | null {
  return board.find((card) => card.word === word && !card.isCovered)?.owner ?? null;
}

/** A clue may neither contain an open word nor be a part of one, in upper or lower case. */
export function isLegalClue({ word, number }: Clue, board: Board): boolean {
  const clue = word.toLowerCase();
  const open = openWords(board).map((each) => each.toLowerCase());
  return clue !== '' && number >= 1 && open.every((each) => !each.includes(clue) && !clue.includes(each));
}
