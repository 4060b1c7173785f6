/** The small edition's boards: five words, of which two are the team's and one is the assassin; and what clues mean. */
import type { Board, Clue, Owner } from './game.ts';

export const SMALL_WORDS = ['1', '2', '3', '4', '5'] as const;

/** The words that a clue fits, as a language would say it. The spymaster sees it, the guesser has to find out. */
const MEANINGS: Readonly<Record<string, readonly string[]>> = {
  '6': ['1', '4', '5'],
  '7': ['1', '2'],
  '8': ['2', '3', '5'],
  '9': ['3', '4'],
};

export const SMALL_CLUES = Object.keys(MEANINGS);

export interface SmallScenario {
  readonly id: string;
  /** Owner of each word; null for a word that is not in this game. */
  readonly owners: readonly (Owner | null)[];
}

export function smallBoard({ owners }: SmallScenario): Board {
  return SMALL_WORDS.map((word, index) => ({
    word,
    owner: owners[index] ?? 'neutral',
    isCovered: owners[index] === null,
  }));
}

/** The clues that fit a word of the team and not the assassin. */
export function fittingClues(board: Board): string[] {
  const open = (owner: Owner) => board.filter((card) => card.owner === owner && !card.isCovered);
  const fits = (clue: string, { word }: { word: string }) => MEANINGS[clue]!.includes(word);
  return SMALL_CLUES.filter(
    (clue) => open('team').some((card) => fits(clue, card)) && !open('assassin').some((card) => fits(clue, card)),
  );
}

export function parseSmallClue(answer: string | null): Clue | null {
  return answer !== null && SMALL_CLUES.includes(answer) ? { word: answer, number: 1 } : null;
}

/**
 * The held-out fifth of the 90 boards: these, moved around by one to five places. So each word is as often the assassin
 * as any other, in training too: else a guesser could learn which words are safe.
 */
const HELD_OUT = ['ttnan', 'tta-n', 'tnt-a', 'tat-n'];

const BOARDS = allBoards();
const isHeldOut = ({ id }: SmallScenario) =>
  [0, 1, 2, 3, 4].some((by) => HELD_OUT.includes(id.slice(by) + id.slice(0, by)));

export const trainingBoards = BOARDS.filter((board) => !isHeldOut(board));
export const heldOutBoards = BOARDS.filter(isHeldOut);

/** Repeats the boards in order, under ids of their own. */
export function repeatBoards(boards: readonly SmallScenario[], count: number): SmallScenario[] {
  return Array.from({ length: count }, (_, index) => {
    const { id, owners } = boards[index % boards.length]!;
    return { id: `${id}-${Math.floor(index / boards.length)}`, owners };
  });
}

/** Two words of the team, the assassin, and two others, of which one may be missing. */
function allBoards(): SmallScenario[] {
  const marks: Readonly<Record<string, Owner | null>> = { t: 'team', a: 'assassin', n: 'neutral', '-': null };
  return ['ttann', 'ttan-']
    .flatMap((kinds) => ordersOf(kinds))
    .map((id) => ({ id, owners: id.split('').map((mark) => marks[mark]!) }));
}

/** Every different order of the letters. */
function ordersOf(letters: string): string[] {
  if (letters === '') return [''];
  return [...new Set(letters)].flatMap((first) =>
    ordersOf(letters.replace(first, '')).map((rest) => `${first}${rest}`),
  );
}
