/** The notes that the server serves: three on each word, numbered as they were written, such as `BOR/8.txt`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom } from 'temper-rl';

export interface Note {
  readonly number: number;
  readonly word: string;
}

const WORDS = 200;
const NOTES_EACH = 3;
/** Numbers of one digit and words whose letters tell their place: what `pocket-tools` has learned to copy. */
const NUMBERS = Array.from({ length: 9 }, (_, index) => 1 + index);
const LETTERS = ['BDFGKMNP', 'EOUY', 'CHJLRSVZ'].map((letters) => letters.split(''));
const ALL_WORDS = LETTERS.reduce((begun, letters) => begun.flatMap((word) => letters.map((letter) => word + letter)));

/** Words that have a folder of notes. */
export const words: readonly string[] = draw(ALL_WORDS, WORDS, 'words');

/** The notes on a word, the newest first. */
export function notesOn(word: string): Note[] {
  const others = ALL_WORDS.filter((each) => each !== word);
  const told = draw(others, NOTES_EACH, `notes on ${word}`);
  const numbers = draw(NUMBERS, NOTES_EACH, `numbers on ${word}`).toSorted((a, b) => b - a);
  return numbers.map((number, index) => ({ number, word: told[index]! }));
}

/** Writes `FOLDER/BOR/8.txt` and the others. */
export function writeNotes(folder: string): void {
  for (const about of words) {
    mkdirSync(join(folder, about), { recursive: true });
    for (const { number, word } of notesOn(about))
      writeFileSync(join(folder, about, `${number}.txt`), `${about} is ${word}.`);
  }
}

/** The same for the same seed. */
function draw<T>(items: readonly T[], count: number, seed: string): T[] {
  const random = seededRandom(seed);
  const keyed = items.map((item) => ({ item, key: random() }));
  const shuffled = keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
  return shuffled.slice(0, count);
}
