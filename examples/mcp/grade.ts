/** The reward of an answer: the newest note decides, not a judge. */
import { notesOn } from './notes.ts';

const RIGHT = 1;
const WITH_ITS_NUMBER = 0.3;
/** Something to learn from before the first right answer. */
const HAS_READ_IT = 0.1;

/** The word that a question is about; null for any other text. */
export function wordOf(task: string): string | null {
  return /^What is ([A-Z]{3})\?$/.exec(task)?.[1] ?? null;
}

/** `KEL 8` is right where the newest note on the word, number 8, tells `KEL`. */
export function gradeAnswer(task: string, answer: string | null, read: ReadonlySet<string>) {
  const about = wordOf(task);
  if (about === null) throw new Error(`a task must read as What is BOR?, got ${JSON.stringify(task)}`);
  const [{ word, number }] = notesOn(about) as [{ word: string; number: number }];
  const [said, cited] = answer?.split(' ') ?? [];
  const correct = said === word;
  const sourced = correct && cited === String(number);
  const newest = read.has(`${about}/${number}.txt`);
  const partial = newest ? HAS_READ_IT : 0;
  const reward = correct ? RIGHT + (sourced ? WITH_ITS_NUMBER : 0) : partial;
  return { reward, metrics: { correct, sourced, newest, answered: answer !== null } };
}
