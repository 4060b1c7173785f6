/** Mailboxes drawn by a seed: nine mails such as `BOR is KEL.`; three tell of each word, and the newest counts. */
import { seededRandom } from 'temper-rl';

export interface Mail {
  /** One digit. */
  readonly id: number;
  readonly body: string;
}

export interface Mailbox {
  /** The oldest first. */
  readonly mails: readonly Mail[];
  readonly question: string;
  readonly answer: string;
}

/** From here on a seed's mailbox is of held-out words. */
export const FIRST_EXAM_SEED = 1_000_000;

const EXAM_SHARE = 0.2;
/** Words whose letters tell their place: what `pocket-tools` has learned to copy. */
const LETTERS = ['BDFGKMNP', 'EOUY', 'CHJLRSVZ'].map((letters) => letters.split(''));
const THREE = [0, 1, 2];

type Random = () => number;

export function makeMailbox(seed: number): Mailbox {
  const random = seededRandom('small mailbox', seed);
  const known = new Set<string>();
  const isExam = seed >= FIRST_EXAM_SEED;
  const subjects = THREE.map(() => newWord(random, known, (word) => isHeldOut(word) === isExam));
  const told = subjects.flatMap((about) => THREE.map(() => ({ about, word: newWord(random, known, () => true) })));
  const ids = shuffle([1, 2, 3, 4, 5, 6, 7, 8, 9], random);
  const inOrder = shuffle(told, random);
  const [asked] = subjects;
  return {
    mails: inOrder.map(({ about, word }, index) => ({ id: ids[index]!, body: `${about} is ${word}.` })),
    question: `What is ${asked}?`,
    answer: inOrder.findLast(({ about }) => about === asked)!.word,
  };
}

/** Which words are asked for in the exam, and never in the training. */
function isHeldOut(word: string): boolean {
  return seededRandom('exam', word)() < EXAM_SHARE;
}

/** No word twice in a mailbox: what is searched for is found in its own mails alone. */
function newWord(random: Random, known: Set<string>, fits: (word: string) => boolean): string {
  for (;;) {
    const word = LETTERS.map((letters) => letters[Math.floor(random() * letters.length)]!).join('');
    if (known.has(word) || !fits(word)) continue;
    known.add(word);
    return word;
  }
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  const shuffled = [...items];
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [shuffled[last], shuffled[other]] = [shuffled[other]!, shuffled[last]!];
  }
  return shuffled;
}
