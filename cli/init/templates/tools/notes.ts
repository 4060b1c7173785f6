/** Nine short notes, the newest first: three words, and three notes about each of them. */
export interface Note {
  readonly id: number;
  /** `BOR is KEL.` */
  readonly text: string;
}

export interface Notes {
  readonly notes: readonly Note[];
  readonly question: string;
  readonly answer: string;
}

const LETTERS = ['BDFGKMNP', 'EOUY', 'CHJLRSVZ'];
const IDS = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Other numbers, other notes; `random` makes the same ones for all attempts at a scenario. */
export function makeNotes(random: () => number): Notes {
  const words = new Set<string>();
  while (words.size < 12) words.add(LETTERS.map((letters) => letters[Math.floor(random() * letters.length)]).join(''));
  const [first = '', second = '', third = '', ...told] = words;
  const subjects = [first, second, third, first, second, third, first, second, third];
  const ids = shuffle(IDS, random);
  const notes = shuffle(subjects, random).map((subject, index) => ({
    id: ids[index] ?? 0,
    text: `${subject} is ${told[index]}.`,
  }));
  const newest = notes.find(({ text }) => text.startsWith(first));
  return { notes, question: `What is ${first}?`, answer: newest?.text.slice(-4, -1) ?? '' };
}

function shuffle<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .toSorted((left, right) => left.at - right.at)
    .map(({ item }) => item);
}
