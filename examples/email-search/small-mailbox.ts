/** The small edition's mailboxes: nine mails such as `BOR is KEL.`; three tell of each word, and the newest counts. */
import { seededRandom } from 'temper-rl';
import { pick, shuffle, twoDigits, type Random } from './facts.ts';
import type { Mail, Mailbox } from './mail.ts';

/** From here on a seed's mailbox is of held-out words. */
export const FIRST_EXAM_SEED = 1_000_000;

const EXAM_SHARE = 0.2;
const SUBJECTS = 3;
const MAILS_EACH = 3;
/** Ids have one digit, which can be copied at a glance. */
const IDS = Array.from({ length: SUBJECTS * MAILS_EACH }, (_, index) => 1 + index);
/** 256 words can be said. No letter has two places, nor stands in the tools' description: so two layers can learn to copy them. */
const LETTERS = ['BDFGKMNP', 'EOUY', 'CHJLRSVZ'].map((letters) => letters.split(''));

/** Which words are asked for in the exam, and never in the training. */
export function isHeldOut(word: string): boolean {
  return seededRandom('exam', word)() < EXAM_SHARE;
}

/** Its one question is about the first of its subjects. */
export function makeSmallMailbox(seed: number): Mailbox {
  const random = seededRandom('small mailbox', seed);
  const known = new Set<string>();
  const isExam = seed >= FIRST_EXAM_SEED;
  const subjects = drawMany(SUBJECTS, () => newWord(random, known, (word) => isHeldOut(word) === isExam));
  const told = subjects.flatMap((subject) =>
    drawMany(MAILS_EACH, () => ({ subject, word: newWord(random, known, () => true) })),
  );
  const ids = shuffle(IDS, random);
  const mails = shuffle(told, random).map(({ subject, word }, index) => ({
    mail: toMail(ids[index]!, index, `${subject} is ${word}.`),
    subject,
    word,
  }));
  const asked = subjects[0]!;
  const newest = mails.findLast(({ subject }) => subject === asked)!;
  const question = { text: `What is ${asked}?`, answer: newest.word, sources: [newest.mail.id] };
  return { mails: mails.map(({ mail }) => mail), questions: [question] };
}

/** No word twice in a mailbox: what is searched for is found in its own mails alone. */
function newWord(random: Random, known: Set<string>, fits: (word: string) => boolean): string {
  for (;;) {
    const word = LETTERS.map((letters) => pick(letters, random)).join('');
    if (known.has(word) || !fits(word)) continue;
    known.add(word);
    return word;
  }
}

function drawMany<T>(count: number, draw: () => T): T[] {
  return Array.from({ length: count }, draw);
}

function toMail(id: number, index: number, body: string): Mail {
  return { id, date: `2024-01-${twoDigits(1 + index)} 08:00`, from: '', to: '', subject: '', body };
}
