/** One game: the spymaster gives a clue, the guesser names words one by one, until the words or the turns are used up. */
import { countOpen, cover, isLegalClue, ownerOf, type Board, type Clue } from './game.ts';

export interface Players {
  /** Null: what the spymaster said is no clue. */
  giveClue: (board: Board, turnsLeft: number) => Promise<Clue | null>;
  /** Anything but an open word breaks a rule. `guess` counts from 1 in each turn. */
  nameWord: (board: Board, clue: Clue, guess: number) => Promise<string | typeof PASS | null>;
}

/** The guesser may stop after the first guess of a turn. */
export const PASS = Symbol('pass');

/** A player who breaks a rule loses this, and the game ends. */
const FOUL = 1;
/** Both lose this if the assassin is named, and the game ends. */
const ASSASSIN = 0.5;

export interface Ending {
  readonly roleRewards: { readonly spymaster: number; readonly guesser: number | null };
  readonly metrics: {
    /** Share of the team's words. */
    readonly found: number;
    readonly won: boolean;
    readonly assassin: boolean;
    readonly foulClue: boolean;
    readonly foulGuess: boolean;
    readonly turns: number;
  };
}

type Stop = 'assassin' | 'foulClue' | 'foulGuess';

export async function playGame(start: Board, maxTurns: number, players: Players): Promise<Ending> {
  let board = start;
  let stop: Stop | null = null;
  let turns = 0;
  while (stop === null && turns < maxTurns && countOpen(board, 'team') > 0) {
    const clue = await players.giveClue(board, maxTurns - turns);
    turns += 1;
    if (clue === null || !isLegalClue(clue, board)) stop = 'foulClue';
    else ({ board, stop } = await playTurn(board, clue, players));
  }
  return endingOf({ found: 1 - countOpen(board, 'team') / countOpen(start, 'team'), stop, turns });
}

/** The turn ends with the clue's number, a pass, or a word that is not the team's. */
async function playTurn(start: Board, clue: Clue, { nameWord }: Players): Promise<{ board: Board; stop: Stop | null }> {
  let board = start;
  for (let guess = 1; guess <= clue.number && countOpen(board, 'team') > 0; guess++) {
    const word = await nameWord(board, clue, guess);
    if (word === PASS && guess > 1) break;
    const owner = typeof word === 'string' ? ownerOf(board, word) : null;
    if (typeof word !== 'string' || owner === null) return { board, stop: 'foulGuess' };
    board = cover(board, word);
    if (owner === 'assassin') return { board, stop: 'assassin' };
    if (owner === 'neutral') break;
  }
  return { board, stop: null };
}

/** Both earn what the team has found; who breaks a rule pays for it alone. */
function endingOf({ found, stop, turns }: { found: number; stop: Stop | null; turns: number }): Ending {
  const shared = found - (stop === 'assassin' ? ASSASSIN : 0);
  // A guesser who was never asked has nothing to learn from this game.
  const isAsked = turns > 1 || stop !== 'foulClue';
  return {
    roleRewards: {
      spymaster: shared - (stop === 'foulClue' ? FOUL : 0),
      guesser: isAsked ? shared - (stop === 'foulGuess' ? FOUL : 0) : null,
    },
    metrics: {
      found,
      won: found === 1,
      assassin: stop === 'assassin',
      foulClue: stop === 'foulClue',
      foulGuess: stop === 'foulGuess',
      turns,
    },
  };
}
