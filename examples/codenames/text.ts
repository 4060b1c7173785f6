/** The prompts of `agent.ts`, and how answers are read. */
import { openWords, type Board, type Clue, type Owner } from './game.ts';
import { PASS } from './play.ts';

export function renderForSpymaster(board: Board, turnsLeft: number): string {
  return [
    'You are the spymaster in a game of Codenames. Your guesser sees the words, but not whose they are.',
    `Your team's words: ${listOf(board, 'team')}`,
    `Neutral words: ${listOf(board, 'neutral')}`,
    `The assassin: ${listOf(board, 'assassin')}. If it is named, the game is lost.`,
    `Your team has ${turnsLeft} ${turnsLeft === 1 ? 'turn' : 'turns'} left to find all of its words.`,
    'Give a clue: one word that fits some of your words and no other, and how many of your words it fits.',
    'The clue must not be one of the words above, nor contain one, nor be a part of one.',
    'End with one line: the clue and the number, such as OCEAN 2',
  ].join('\n');
}

export function renderForGuesser(board: Board, { word, number }: Clue, guess: number): string {
  const mayPass = guess > 1;
  return [
    "You are the guesser in a game of Codenames. Some of these words are your team's, some are neutral, one is the assassin:",
    openWords(board).join(', '),
    `Your spymaster's clue is ${word} ${number}. This is guess ${guess} of at most ${number}.`,
    'A neutral word ends your turn. If you name the assassin, the game is lost.',
    `Name one word of the list${mayPass ? ', or PASS to end your turn' : ''}.`,
    `End with one line: the word${mayPass ? ' or PASS' : ''}, and nothing else`,
  ].join('\n');
}

export function parseClue(answer: string | null): Clue | null {
  const [, word, number] = /^(\p{L}+)[\s,:]+([1-9])$/u.exec(lastLine(answer)) ?? [];
  return word === undefined ? null : { word: word.toUpperCase(), number: Number(number) };
}

/** The rules of the game decide whether it may be named. */
export function parseGuess(answer: string | null): string | typeof PASS {
  const named = lastLine(answer).toUpperCase();
  return named === 'PASS' ? PASS : named;
}

/** Without marks around it, such as `**OCEAN 2**.` */
function lastLine(answer: string | null): string {
  const lines = (answer ?? '').split('\n').filter((line) => line.trim() !== '');
  return (lines.at(-1) ?? '').replaceAll(/^[^\p{L}]+|[^\p{L}\d]+$/gu, '');
}

function listOf(board: Board, owner: Owner): string {
  return board
    .filter((card) => card.owner === owner && !card.isCovered)
    .map(({ word }) => word)
    .join(', ');
}
