/** Mailboxes drawn by a seed: nine mails such as `BOR is KEL.`; three tell of each word, and the newest counts. */
import { seededRandom } from 'temper-rl';

export interface Mail {
  readonly id: number;
  /** Later mails sort after earlier ones. */
  readonly date: string;
  readonly body: string;
}

export interface Question {
  readonly text: string;
  /** Known to the generator, so that nobody has to judge. */
  readonly answer: string;
  /** Id of the mail that tells it. */
  readonly source: number;
}

export interface Mailbox {
  readonly mails: readonly Mail[];
  readonly question: Question;
}

export interface Scenario {
  readonly id: string;
  /** Seed of the mailbox. */
  readonly seed: number;
}

/** From here on a seed's mailbox is of held-out words. */
const FIRST_EXAM_SEED = 1_000_000;

const EXAM_SHARE = 0.2;
const SUBJECTS = 3;
const MAILS_EACH = 3;
/** Ids have one digit, which can be copied at a glance. */
const IDS = Array.from({ length: SUBJECTS * MAILS_EACH }, (_, index) => 1 + index);
/** 256 words can be said. No letter has two places, nor stands in the tools' description: so two layers can learn to copy them. */
const LETTERS = ['BDFGKMNP', 'EOUY', 'CHJLRSVZ'].map((letters) => letters.split(''));

type Random = () => number;

export const scenarios = mailboxes(0, 4000);
/** Mailboxes with words that are never asked for in the training. */
export const examScenarios = mailboxes(FIRST_EXAM_SEED, 200);

function mailboxes(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `mailbox-${firstSeed + index}`, seed: firstSeed + index }));
}

export function makeMailbox(seed: number): Mailbox {
  const random = seededRandom('small mailbox', seed);
  const known = new Set<string>();
  const isExam = seed >= FIRST_EXAM_SEED;
  const subjects = drawMany(SUBJECTS, () => newWord(random, known, (word) => isHeldOut(word) === isExam));
  const told = subjects.flatMap((subject) =>
    drawMany(MAILS_EACH, () => ({ subject, word: newWord(random, known, () => true) })),
  );
  const ids = shuffle(IDS, random);
  const mails = shuffle(told, random).map(({ subject, word }, index) => ({
    mail: { id: ids[index]!, date: `2024-01-0${1 + index}`, body: `${subject} is ${word}.` },
    subject,
    word,
  }));
  const asked = subjects[0]!;
  const newest = mails.findLast(({ subject }) => subject === asked)!;
  const question = { text: `What is ${asked}?`, answer: newest.word, source: newest.mail.id };
  return { mails: mails.map(({ mail }) => mail), question };
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

function drawMany<T>(count: number, draw: () => T): T[] {
  return Array.from({ length: count }, draw);
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  const shuffled = [...items];
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [shuffled[last], shuffled[other]] = [shuffled[other]!, shuffled[last]!];
  }
  return shuffled;
}
