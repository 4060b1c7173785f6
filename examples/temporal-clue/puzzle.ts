/** Makes a puzzle with exactly one answer, the same for one seed: an evening, and true clues until nothing else is possible. */
import { seededRandom } from 'temper-rl';

export type Clue =
  | { readonly kind: 'at' | 'not-at'; readonly guest: number; readonly hour: number; readonly room: number }
  /** From the first hour to the second. */
  | { readonly kind: 'stayed' | 'moved'; readonly guest: number };

export interface Puzzle {
  readonly clues: readonly Clue[];
  /** Where and when it happened, which is known from the start. */
  readonly room: number;
  readonly hour: number;
  /** Number of the guest who was there. */
  readonly answer: number;
}

/** What may have happened: rooms by guest and hour (`at[guest][hour]`), and who did it when. */
interface Evening {
  readonly at: readonly (readonly number[])[];
  readonly guest: number;
  readonly hour: number;
}

const GUESTS = [0, 1, 2];
const ROOMS = [0, 1, 2];
const HOURS = [0, 1];
/** At each hour each room has exactly one guest in it: rooms by guest. */
const ORDERS = ['012', '021', '102', '120', '201', '210'].map((rooms) => rooms.split('').map(Number));
const EVENINGS: readonly Evening[] = ORDERS.flatMap((first) =>
  ORDERS.flatMap((second) => {
    const at = GUESTS.map((guest) => [first[guest]!, second[guest]!]);
    return GUESTS.flatMap((guest) => HOURS.map((hour) => ({ at, guest, hour })));
  }),
);

/** Everything that a witness could say, true or not. */
const ALL_CLUES: readonly Clue[] = [
  ...GUESTS.flatMap((guest) =>
    HOURS.flatMap((hour) =>
      ROOMS.flatMap((room) => (['at', 'not-at'] as const).map((kind) => ({ kind, guest, hour, room }))),
    ),
  ),
  ...GUESTS.flatMap((guest) => (['stayed', 'moved'] as const).map((kind) => ({ kind, guest }))),
];

export function makePuzzle(seed: number): Puzzle {
  const random = seededRandom(seed, 'temporal clue');
  const evening = EVENINGS[Math.floor(random() * EVENINGS.length)]!;
  // Drawn for nothing: the puzzles that were measured drew a weapon here.
  random();
  const { guest: answer, hour } = evening;
  const room = crimeRoom(evening);
  const sayable = shuffle(ALL_CLUES, random).filter((clue) => holds(clue, evening));
  const possible = EVENINGS.filter((other) => other.hour === hour && crimeRoom(other) === room);
  const clues = findClues({ possible, sayable, answer });
  return { clues: shuffle(clues, random), room, hour, answer };
}

function crimeRoom({ at, guest, hour }: Evening): number {
  return at[guest]![hour]!;
}

function holds(clue: Clue, { at }: Evening): boolean {
  const rooms = at[clue.guest]!;
  if (clue.kind === 'at') return rooms[clue.hour] === clue.room;
  if (clue.kind === 'not-at') return rooms[clue.hour] !== clue.room;
  return (rooms[0] === rooms[1]) === (clue.kind === 'stayed');
}

interface Search {
  readonly possible: readonly Evening[];
  readonly sayable: readonly Clue[];
  readonly answer: number;
}

/** The most telling one of this many possible clues is said next: few clues, but not always the same. */
const HEARD = 4;

/** Clue after clue that rules something out, until nothing wrong is possible. */
function findClues({ possible, sayable, answer }: Search): Clue[] {
  const [waiting, chosen]: [Clue[], Clue[]] = [[...sayable], []];
  for (let left = possible; left.some(({ guest }) => guest !== answer);) {
    const heard = waiting.slice(0, HEARD).map((clue) => ({ clue, fewer: left.filter((each) => holds(clue, each)) }));
    const best = heard.toSorted((a, b) => a.fewer.length - b.fewer.length)[0]!;
    waiting.splice(waiting.indexOf(best.clue), 1);
    if (best.fewer.length < left.length) chosen.push(best.clue);
    left = best.fewer;
  }
  const wrong = possible.filter(({ guest }) => guest !== answer);
  return withoutSuperfluous(wrong, chosen);
}

/** A clue is needed where something wrong breaks it and no other. */
function withoutSuperfluous(wrong: readonly Evening[], clues: readonly Clue[]): Clue[] {
  const needed = new Set<Clue>();
  for (const evening of wrong) {
    const broken = clues.filter((clue) => !holds(clue, evening));
    if (broken.length === 1) needed.add(broken[0]!);
  }
  const superfluous = clues.find((clue) => !needed.has(clue));
  if (superfluous === undefined) return [...clues];
  const others = clues.filter((clue) => clue !== superfluous);
  return withoutSuperfluous(wrong, others);
}

function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const shuffled = [...items];
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [shuffled[last], shuffled[other]] = [shuffled[other]!, shuffled[last]!];
  }
  return shuffled;
}
