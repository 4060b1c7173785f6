/** One table, its questions, and its databases: each question is made of two halves, in so few bytes that a pocket model can learn them. */
import { seededRandom } from 'temper-rl';
import { Database } from './database.ts';
import type { Question } from './grade.ts';
import { pick, shuffle } from './random.ts';

export interface Scenario extends Question {
  readonly id: string;
}

const NAMES = 'Ada Ben Cem Dia Eli Fay Gil Hal Ida Jon Kim Lea Max Nia Ole Pia Ray Sam Tom Una Vic Wim Yan Zoe'.split(
  ' ',
);
const TEAMS = [1, 2, 3, 4, 5, 6];
const LIMITS = [25, 30, 35, 40, 45, 50, 55];
const FROM_21_TO_60 = Array.from({ length: 40 }, (_, index) => 21 + index);

/** Questions: what each asks for, what it selects, and how it sorts. */
const ASKED = [
  ['Who is', 'name', ''],
  ['Age of who is', 'age', ''],
  ['Days of who is', 'days', ''],
  ['Team of who is', 'team', ''],
  ['By age, who is', 'name', ' ORDER BY age'],
  ['By days, who is', 'name', ' ORDER BY days'],
] as const;

const CONDITIONS: readonly (readonly [text: string, sql: string])[] = [
  ...TEAMS.map((team) => [`in team ${team}`, `team = ${team}`] as const),
  ...LIMITS.flatMap((limit) => [
    [`aged over ${limit}`, `age > ${limit}`] as const,
    [`aged under ${limit}`, `age < ${limit}`] as const,
    [`over ${limit} days`, `days > ${limit}`] as const,
    [`under ${limit} days`, `days < ${limit}`] as const,
  ]),
];

/** A fifth is held out, spread over both halves: each half is trained, but with others. */
const HELD_OUT_EVERY = 5;
const EXAM_ROUNDS = 8;

const ALL = ASKED.flatMap(([asked, selected, order], row) =>
  CONDITIONS.map(([text, condition], column) => ({
    isHeldOut: (row + column) % HELD_OUT_EVERY === 0,
    scenario: {
      id: `${asked} ${text}`.toLowerCase().replaceAll(/\W+/g, '-'),
      text: `${asked} ${text}?`,
      sql: `SELECT ${selected} FROM guests WHERE ${condition}${order}`,
      isOrdered: order !== '',
    },
  })),
);

export const trainingQuestions: readonly Scenario[] = ALL.filter(({ isHeldOut }) => !isHeldOut).map(
  ({ scenario }) => scenario,
);

/** Each held-out question several times: a model that samples its queries knows an answer more or less. */
export const examQuestions: readonly Scenario[] = Array.from({ length: EXAM_ROUNDS }, (_, round) =>
  ALL.filter(({ isHeldOut }) => isHeldOut).map(({ scenario }) => ({ ...scenario, id: `${scenario.id}-${round + 1}` })),
).flat();

/** The same table with other guests in it: a query that is right by chance in one is wrong in another. */
export function openGuests(seed: number): Database {
  const random = seededRandom('guests', seed);
  // No number twice: there is one order by age, and one by days.
  const [ages, days] = [shuffle(FROM_21_TO_60, random), shuffle(FROM_21_TO_60, random)];
  const guests = NAMES.map((name, index) => [name, ages[index]!, days[index]!, pick(TEAMS, random)]);
  return new Database('CREATE TABLE guests (name TEXT, age INT, days INT, team INT)', { guests });
}
