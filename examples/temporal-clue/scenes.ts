/** Everything that may have happened on one evening: who was where at which hour, what lay where, and who did it. */
import type { Edition } from './edition.ts';

export interface Evening {
  /** Rooms by guest and hour: `at[guest][hour]`. */
  readonly at: readonly (readonly number[])[];
  readonly crime: Crime;
}

/** The weapon that lay in each room, all evening. */
export type Weapons = readonly number[];

export interface Scene extends Evening {
  readonly weaponIn: Weapons;
}

interface Crime {
  readonly guest: number;
  readonly hour: number;
}

/** The room of the crime: nobody but the murderer was there with the victim. */
export function crimeRoom({ at, crime }: Evening): number {
  return at[crime.guest]![crime.hour]!;
}

/** Every evening that the rules of an edition allow. */
export function allEvenings({ guests, hours, rooms, oneGuestInEachRoom }: Edition): Evening[] {
  const rows = oneGuestInEachRoom ? permutations(rooms) : tuples(guests, rooms);
  // An evening is a choice of rooms for all guests at each hour.
  const evenings = tuples(hours, rows.length).map((chosen) =>
    range(guests).map((guest) => chosen.map((row) => rows[row]![guest]!)),
  );
  const crimes = range(guests).flatMap((guest) => range(hours).map((hour) => ({ guest, hour })));
  return evenings.flatMap((at) => crimes.filter((crime) => isAlone(at, crime)).map((crime) => ({ at, crime })));
}

/** Every way in which weapons may lie in the rooms. */
export function allWeapons({ rooms, weapons }: Edition): Weapons[] {
  return weapons ? permutations(rooms) : [range(rooms)];
}

function isAlone(at: Evening['at'], { guest, hour }: Crime): boolean {
  return at.every((rooms, other) => other === guest || rooms[hour] !== at[guest]![hour]);
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** All lists of `length` numbers below `values`. */
function tuples(length: number, values: number): number[][] {
  if (length === 0) return [[]];
  return tuples(length - 1, values).flatMap((head) => range(values).map((value) => [...head, value]));
}

function permutations(count: number): number[][] {
  return tuples(count, count).filter((values) => new Set(values).size === count);
}
