/** A puzzle in words, for models that know language, and in bytes, for those that do not; and what an answer is worth. */
import type { Clue } from './clues.ts';
import { QUESTIONS, type Question } from './edition.ts';
import type { Answer, Puzzle } from './puzzle.ts';

const GUESTS = ['Ada', 'Bruno', 'Clara'];
const ROOMS = ['hall', 'library', 'kitchen'];
const HOURS = ['8', '9', '10'];
const WEAPONS = ['candlestick', 'knife', 'rope'];

const NAMES: Readonly<Record<Question, readonly string[]>> = {
  who: GUESTS,
  room: ROOMS,
  hour: HOURS,
  weapon: WEAPONS,
};

const STORY = [
  `Three guests, ${GUESTS.join(', ')}, spent the evening in three rooms: ${ROOMS.join(', ')}.`,
  `At ${HOURS.join(', ')} o'clock each guest was in one of the rooms; several may have shared one.`,
  `In each room lay one weapon, all evening: ${WEAPONS.join(', ')}.`,
  'At one of these hours the host was killed by a guest who was alone with him in a room, with the weapon that lay there.',
].join('\n');

const TASK = 'Who did it, in which room, at which hour, with what? End with one line: guest, room, hour, weapon.';

export function renderPuzzle({ clues }: Puzzle): string {
  return [STORY, ...clues.map((clue) => `- ${say(clue)}`), TASK].join('\n');
}

const SENTENCES: { readonly [K in Clue['kind']]: (clue: Clue & { kind: K }) => string } = {
  at: ({ hour, guest, room }) => `At ${HOURS[hour]}, ${GUESTS[guest]} was in the ${ROOMS[room]}.`,
  'not-at': ({ hour, guest, room }) => `At ${HOURS[hour]}, ${GUESTS[guest]} was not in the ${ROOMS[room]}.`,
  together: ({ hour, guest, other }) =>
    `At ${HOURS[hour]}, ${GUESTS[guest]} and ${GUESTS[other]} were in the same room.`,
  apart: ({ hour, guest, other }) =>
    `At ${HOURS[hour]}, ${GUESTS[guest]} and ${GUESTS[other]} were in different rooms.`,
  stayed: ({ guest, hour }) => `${GUESTS[guest]} was in the same room at ${HOURS[hour]} and at ${HOURS[hour + 1]}.`,
  moved: ({ guest, hour }) => `${GUESTS[guest]} was in different rooms at ${HOURS[hour]} and at ${HOURS[hour + 1]}.`,
  empty: ({ hour, room }) => `At ${HOURS[hour]}, no guest was in the ${ROOMS[room]}.`,
  'weapon-not-in': ({ weapon, room }) => `The ${WEAPONS[weapon]} was not in the ${ROOMS[room]}.`,
  'crime-from': ({ hour }) => `The host was still alive just before ${HOURS[hour]}.`,
  'crime-until': ({ hour }) => `The host was dead just after ${HOURS[hour]}.`,
  'crime-not-in': ({ room }) => `The host was not killed in the ${ROOMS[room]}.`,
  crime: ({ hour, room }) => `The host was killed at ${HOURS[hour]} in the ${ROOMS[room]}.`,
};

function say(clue: Clue): string {
  const sentence = SENTENCES[clue.kind] as (clue: Clue) => string;
  return sentence(clue);
}

/** The share of the four parts that are right, in the last line of an answer; nothing for anything but four parts. */
export function grade(text: string | null, answer: Answer): number {
  const lines = (text ?? '').split('\n').filter((line) => line.trim() !== '');
  const parts = (lines.at(-1) ?? '').split(',').map((part) => part.trim().toLowerCase().replace(/\.$/, ''));
  if (parts.length !== QUESTIONS.length) return 0;
  const right = QUESTIONS.filter((question, index) => parts[index] === nameOf(question, answer).toLowerCase());
  return right.length / QUESTIONS.length;
}

export function sayAnswer(answer: Answer): string {
  return QUESTIONS.map((question) => nameOf(question, answer)).join(', ');
}

function nameOf(question: Question, answer: Answer): string {
  return NAMES[question][answer[question]]!;
}

const SMALL_ROOMS = 'abc';
const SMALL_HOURS = 'pq';

/**
 * Four bytes for a clue: guest 1 was in room a at hour p (`1ap+`) or was not (`1ap-`), stayed from p to q (`1pq=`) or
 * moved (`1pq!`). Then the question: who was in room c at hour q, when it happened there (`?cq`).
 */
export function renderSmall({ clues, answer }: Puzzle): string {
  return `${clues.map(saySmall).join('')}?${placeOf(answer)}`;
}

const SIGNS: Partial<Record<Clue['kind'], string>> = { at: '+', 'not-at': '-', stayed: '=', moved: '!' };

/** The question's own facts are not said twice. */
function saySmall(clue: Clue): string {
  const sign = SIGNS[clue.kind];
  if (sign === undefined || !('guest' in clue)) return '';
  return `${clue.guest + 1}${'room' in clue ? placeOf(clue) : SMALL_HOURS}${sign}`;
}

function placeOf({ room, hour }: { room: number; hour: number }): string {
  return `${SMALL_ROOMS[room]}${SMALL_HOURS[hour]}`;
}

export function gradeSmall(text: string | null, answer: Answer): 0 | 1 {
  return text === String(answer.who + 1) ? 1 : 0;
}
