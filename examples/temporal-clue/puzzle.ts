/** Makes a puzzle with exactly one answer, the same for one seed: an evening, and true clues until nothing else is possible. */
import { seededRandom } from 'temper-rl';
import { allClues, holdsOfEvening, holdsOfWeapons, type Clue } from './clues.ts';
import type { Edition, Question } from './edition.ts';
import { allEvenings, allWeapons, crimeRoom, type Evening, type Scene, type Weapons } from './scenes.ts';

/** Answers by question: the number of a guest, a room, an hour or a weapon. */
export type Answer = Readonly<Record<Question, number>>;

export interface Puzzle {
  readonly clues: readonly Clue[];
  readonly answer: Answer;
}

export function makePuzzle(edition: Edition, seed: number): Puzzle {
  const random = seededRandom(seed, 'temporal clue');
  const { evenings, weapons } = everything(edition);
  const [evening, weaponIn] = [pick(evenings, random), pick(weapons, random)];
  const answer = answerOf({ ...evening, weaponIn });
  const known: Clue[] = edition.isCrimeKnown ? [{ kind: 'crime', hour: answer.hour, room: answer.room }] : [];
  const sayable = shuffle(allClues(edition), random);
  // Clues about the evening and clues about weapons have nothing to do with each other.
  const ofEvening = findClues({
    possible: evenings.filter((other) => known.every((clue) => holdsOfEvening(clue, other))),
    sayable: sayable.filter((clue) => holdsOfEvening(clue, evening)),
    holds: holdsOfEvening,
    isRight: (other) =>
      other.crime.guest === answer.who && other.crime.hour === answer.hour && crimeRoom(other) === answer.room,
  });
  const ofWeapons = findClues({
    possible: weapons,
    sayable: sayable.filter((clue) => holdsOfWeapons(clue, weaponIn)),
    holds: holdsOfWeapons,
    isRight: (other) => other[answer.room] === answer.weapon,
  });
  return { answer, clues: [...known, ...shuffle([...ofEvening, ...ofWeapons], random)] };
}

export function answerOf(scene: Scene): Answer {
  const room = crimeRoom(scene);
  return { who: scene.crime.guest, hour: scene.crime.hour, room, weapon: scene.weaponIn[room]! };
}

interface Search<T> {
  readonly possible: readonly T[];
  readonly sayable: readonly Clue[];
  readonly holds: (clue: Clue, item: T) => boolean;
  readonly isRight: (item: T) => boolean;
}

/** The most telling one of this many possible clues is said next: few clues, but not always the same. */
const HEARD = 4;

/** Clue after clue that rules something out, until nothing wrong is possible. */
function findClues<T>(search: Search<T>): Clue[] {
  const [waiting, chosen]: [Clue[], Clue[]] = [[...search.sayable], []];
  for (let left = search.possible; !left.every(search.isRight);) {
    const heard = waiting.slice(0, HEARD).map((clue) => {
      return { clue, fewer: left.filter((item) => search.holds(clue, item)) };
    });
    const best = heard.toSorted((a, b) => a.fewer.length - b.fewer.length)[0]!;
    waiting.splice(waiting.indexOf(best.clue), 1);
    if (best.fewer.length < left.length) chosen.push(best.clue);
    left = best.fewer;
  }
  return withoutSuperfluous(search, chosen);
}

/** A clue is needed where something wrong breaks it and no other. */
function withoutSuperfluous<T>(search: Search<T>, clues: readonly Clue[]): Clue[] {
  const needed = new Set<Clue>();
  for (const item of search.possible) {
    const broken = firstBroken(search, clues, item);
    if (broken.length === 1 && !search.isRight(item)) needed.add(broken[0]!);
  }
  const superfluous = clues.find((clue) => !needed.has(clue));
  if (superfluous === undefined) return [...clues];
  const others = clues.filter((clue) => clue !== superfluous);
  return withoutSuperfluous(search, others);
}

/** Two at most: more are not asked for. */
function firstBroken<T>({ holds }: Search<T>, clues: readonly Clue[], item: T): Clue[] {
  const broken: Clue[] = [];
  for (const clue of clues) {
    if (holds(clue, item)) continue;
    broken.push(clue);
    if (broken.length === 2) break;
  }
  return broken;
}

interface Everything {
  readonly evenings: readonly Evening[];
  readonly weapons: readonly Weapons[];
}

const made = new Map<Edition, Everything>();

function everything(edition: Edition): Everything {
  const all = made.get(edition) ?? { evenings: allEvenings(edition), weapons: allWeapons(edition) };
  made.set(edition, all);
  return all;
}

function pick<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)]!;
}

function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const shuffled = [...items];
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [shuffled[last], shuffled[other]] = [shuffled[other]!, shuffled[last]!];
  }
  return shuffled;
}
