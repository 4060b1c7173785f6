/** How large a puzzle is, and what is asked. */
import type { Clue } from './clues.ts';

export interface Edition {
  readonly guests: number;
  readonly hours: number;
  readonly rooms: number;
  /** At every hour each room has exactly one guest in it. */
  readonly oneGuestInEachRoom: boolean;
  /** A weapon lies in each room, and it is asked which one it was. */
  readonly weapons: boolean;
  /** Hour and room of the crime are known from the start. */
  readonly isCrimeKnown: boolean;
  /** Kinds of clues. */
  readonly kinds: readonly Clue['kind'][];
  readonly asked: readonly Question[];
}

export const QUESTIONS = ['who', 'room', 'hour', 'weapon'] as const;
export type Question = (typeof QUESTIONS)[number];

export const FULL: Edition = {
  guests: 3,
  hours: 3,
  rooms: 3,
  oneGuestInEachRoom: false,
  weapons: true,
  isCrimeKnown: false,
  kinds: [
    ...(['at', 'not-at', 'together', 'apart', 'stayed', 'moved', 'empty'] as const),
    ...(['crime-from', 'crime-until', 'crime-not-in', 'weapon-not-in'] as const),
  ],
  asked: QUESTIONS,
};

/** Two hours, three rooms, and one question with three possible answers. */
export const SMALL: Edition = {
  guests: 3,
  hours: 2,
  rooms: 3,
  oneGuestInEachRoom: true,
  weapons: false,
  isCrimeKnown: true,
  kinds: ['at', 'not-at', 'stayed', 'moved'],
  asked: ['who'],
};
