/** Clues of witnesses, and when they are true. */
import type { Edition } from './edition.ts';
import { crimeRoom, range, type Evening, type Weapons } from './scenes.ts';

export type Clue =
  | { readonly kind: 'at' | 'not-at'; readonly guest: number; readonly hour: number; readonly room: number }
  | { readonly kind: 'together' | 'apart'; readonly guest: number; readonly other: number; readonly hour: number }
  /** From this hour to the next. */
  | { readonly kind: 'stayed' | 'moved'; readonly guest: number; readonly hour: number }
  | { readonly kind: 'empty'; readonly room: number; readonly hour: number }
  | { readonly kind: 'weapon-not-in'; readonly weapon: number; readonly room: number }
  /** At this hour or later, at this hour or earlier. */
  | { readonly kind: 'crime-from' | 'crime-until'; readonly hour: number }
  | { readonly kind: 'crime-not-in'; readonly room: number }
  | { readonly kind: 'crime'; readonly room: number; readonly hour: number };

type Kind = Clue['kind'];

/** Meanings of clues about an evening; one about weapons says nothing of it. */
const MEANINGS: { readonly [K in Kind]: (clue: Clue & { kind: K }, evening: Evening) => boolean } = {
  at: ({ guest, hour, room }, { at }) => at[guest]![hour] === room,
  'not-at': ({ guest, hour, room }, { at }) => at[guest]![hour] !== room,
  together: ({ guest, other, hour }, { at }) => at[guest]![hour] === at[other]![hour],
  apart: ({ guest, other, hour }, { at }) => at[guest]![hour] !== at[other]![hour],
  stayed: ({ guest, hour }, { at }) => at[guest]![hour] === at[guest]![hour + 1],
  moved: ({ guest, hour }, { at }) => at[guest]![hour] !== at[guest]![hour + 1],
  empty: ({ room, hour }, { at }) => at.every((rooms) => rooms[hour] !== room),
  'crime-from': ({ hour }, { crime }) => crime.hour >= hour,
  'crime-until': ({ hour }, { crime }) => crime.hour <= hour,
  'crime-not-in': ({ room }, evening) => crimeRoom(evening) !== room,
  crime: ({ room, hour }, evening) => evening.crime.hour === hour && crimeRoom(evening) === room,
  'weapon-not-in': () => true,
};

export function holdsOfEvening(clue: Clue, evening: Evening): boolean {
  const meaning = MEANINGS[clue.kind] as (clue: Clue, evening: Evening) => boolean;
  return meaning(clue, evening);
}

/** A clue that says nothing of weapons holds whatever they do. */
export function holdsOfWeapons(clue: Clue, weaponIn: Weapons): boolean {
  return clue.kind !== 'weapon-not-in' || weaponIn[clue.room] !== clue.weapon;
}

/** Everything that a witness could say in an edition, true or not. */
export function allClues({ guests, hours, rooms, kinds }: Edition): Clue[] {
  const places = range(hours).flatMap((hour) => range(rooms).map((room) => ({ hour, room })));
  const pairs = range(guests).flatMap((guest) => range(guest).map((other) => ({ guest, other })));
  const clues = [
    ...range(guests).flatMap((guest) => places.flatMap((place) => say(['at', 'not-at'], { guest, ...place }))),
    ...range(hours).flatMap((hour) => pairs.flatMap((pair) => say(['together', 'apart'], { ...pair, hour }))),
    ...range(guests).flatMap((guest) => range(hours - 1).flatMap((hour) => say(['stayed', 'moved'], { guest, hour }))),
    ...places.flatMap((place) => say(['empty'], place)),
    ...range(rooms).flatMap((room) => range(rooms).flatMap((weapon) => say(['weapon-not-in'], { weapon, room }))),
    ...range(hours).flatMap((hour) => say(['crime-from', 'crime-until'], { hour })),
    ...range(rooms).flatMap((room) => say(['crime-not-in'], { room })),
  ];
  return clues.filter(({ kind }) => kinds.includes(kind));
}

function say(kinds: readonly Kind[], of: object): Clue[] {
  return kinds.map((kind) => ({ kind, ...of }) as Clue);
}
