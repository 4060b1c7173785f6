/** The small edition: one table, and questions made of two halves, in so few bytes that the pocket model can learn them. */
import { seededRandom } from 'temper-rl';
import { Database } from './database.ts';
import type { Question } from './grade.ts';
import { pick, shuffle } from './random.ts';

export interface Scenario extends Question {
  readonly id: string;
}

const TOWNS = ['Bern', 'Cork', 'Lima', 'Oslo', 'Rome', 'York'];
const TEAMS = ['art', 'data', 'legal', 'ops', 'sales', 'tests'];
const LIMITS = [25, 30, 35, 40, 45, 50, 55];
const NAMES = 'Ada Ben Cem Dia Eli Fay Gil Hal Ida Jon Kim Lea Max Nia Ole Pia Ray Sam Tom Una Vic Wim Yan Zoe'.split(
  ' ',
);

const FROM_21_TO_60 = Array.from({ length: 40 }, (_, index) => 21 + index);

/** What is asked for, what is selected, and how it is sorted. */
const ASKED = [
  ['Who is', 'name', ''],
  ['How many are', 'count(*)', ''],
  ['Mean age', 'avg(age)', ''],
  ['Mean pay', 'avg(pay)', ''],
  ['Total pay', 'sum(pay)', ''],
  ['By age', 'name', ' ORDER BY age'],
] as const;

const CONDITIONS: readonly (readonly [text: string, sql: string])[] = [
  ...TOWNS.map((town) => [`in ${town}`, `town = '${town}'`] as const),
  ...TEAMS.map((team) => [`on ${team}`, `team = '${team}'`] as const),
  ...LIMITS.flatMap((limit) => [
    [`over ${limit}`, `age > ${limit}`] as const,
    [`under ${limit}`, `age < ${limit}`] as const,
    [`paid over ${limit}`, `pay > ${limit}`] as const,
    [`paid under ${limit}`, `pay < ${limit}`] as const,
  ]),
];

/** A fifth is held out, spread over both halves: each half is trained, but with others. */
const HELD_OUT_EVERY = 5;
const EXAM_ROUNDS = 4;

const ALL = ASKED.flatMap(([asked, selected, order], row) =>
  CONDITIONS.map(([text, condition], column) => ({
    isHeldOut: (row + column) % HELD_OUT_EVERY === 0,
    scenario: {
      id: `${asked} ${text}`.toLowerCase().replaceAll(' ', '-'),
      text: `${asked} ${text}?`,
      sql: `SELECT ${selected} FROM staff WHERE ${condition}${order}`,
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

/** The same table with other people in it: a query that is right by chance in one is wrong in another. */
export function openStaff(seed: number): Database {
  const random = seededRandom('staff', seed);
  // No age twice: there is one order by age.
  const [ages, pays] = [shuffle(FROM_21_TO_60, random), shuffle(FROM_21_TO_60, random)];
  const people = NAMES.map((name, index) => [
    name,
    pick(TEAMS, random),
    pick(TOWNS, random),
    ages[index]!,
    pays[index]!,
  ]);
  return new Database('CREATE TABLE staff (name TEXT, team TEXT, town TEXT, age INT, pay INT)', { staff: people });
}
