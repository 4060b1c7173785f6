import { afterAll, describe, expect, test } from 'vitest';
import agent from '../../examples/text-to-sql/agent.ts';
import { makeChats } from '../../examples/text-to-sql/chats.ts';
import { Database, sameRows, type Rows } from '../../examples/text-to-sql/database.ts';
import { grade, type Question } from '../../examples/text-to-sql/grade.ts';
import * as shop from '../../examples/text-to-sql/shop-questions.ts';
import { openShop } from '../../examples/text-to-sql/shop.ts';
import small from '../../examples/text-to-sql/small-sql.ts';
import * as guests from '../../examples/text-to-sql/guests.ts';
import { parseChatExamples } from '../../core/chat-examples.ts';
import type { RolloutResult } from '../../play/agent.ts';
import { startFakeEngine } from '../fake-engine.ts';
import { playOne } from '../play/play.ts';

const parties = [1, 2, 3].map(guests.openGuests);
const shops = [1, 2, 3, 4, 5].map(openShop);
afterAll(() => {
  for (const database of [...parties, ...shops]) database.close();
});

interface Guest {
  readonly name: string;
  readonly age: number;
  readonly days: number;
  readonly team: number;
}

/** A question of the small edition answered by hand: shares nothing with its query. */
function answer(text: string, invited: readonly Guest[]): Rows {
  const condition = /^(.*?) (in team|aged over|aged under|over|under) (\d+)(?: days)?\?$/.exec(text)!;
  const [, asked = '', word = '', value] = condition;
  const number = Number(value);
  const fits: Record<string, (guest: Guest) => boolean> = {
    'in team': ({ team }) => team === number,
    'aged over': ({ age }) => age > number,
    'aged under': ({ age }) => age < number,
    over: ({ days }) => days > number,
    under: ({ days }) => days < number,
  };
  const found = invited.filter(fits[word]!);
  const names = (by: 'age' | 'days') => found.toSorted((a, b) => a[by] - b[by]).map(({ name }) => [name]);
  const answers: Record<string, () => Rows> = {
    'Who is': () => found.map(({ name }) => [name]),
    'Age of who is': () => found.map(({ age }) => [age]),
    'Days of who is': () => found.map(({ days }) => [days]),
    'Team of who is': () => found.map(({ team }) => [team]),
    'By age, who is': () => names('age'),
    'By days, who is': () => names('days'),
  };
  return answers[asked]!();
}

const EDITIONS = [
  ['the small edition', guests, parties, 163, 41],
  ['the full edition', shop, shops, 134, 36],
] as const;

describe.each(EDITIONS)('questions of %s', (_, { trainingQuestions, examQuestions }, databases, trained, held) => {
  const all = new Map<string, Question>([...trainingQuestions, ...examQuestions].map((each) => [each.text, each]));

  test('are trained or held out, never both', () => {
    const training = new Set(trainingQuestions.map(({ text }) => text));
    const exam = new Set(examQuestions.map(({ text }) => text));
    expect([training.size, exam.size]).toEqual([trained, held]);
    expect([...exam].filter((text) => training.has(text))).toEqual([]);
    const ids = [...trainingQuestions, ...examQuestions].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('have answers of which no two are the same in all databases', () => {
    const answered = [...all.values()].map(({ sql, isOrdered }) => {
      const results = databases.map((database) => database.query(sql));
      const rows = results.map((result) => result.map((row) => row.join(',')));
      return JSON.stringify([isOrdered, isOrdered ? rows : rows.map((each) => each.toSorted())]);
    });
    expect(new Set(answered).size).toBe(all.size);
  });
});

test('each half of a small question is trained with other halves', () => {
  const halves = (questions: readonly Question[]) =>
    new Set(questions.flatMap(({ sql }) => sql.split(/SELECT | FROM guests WHERE | ORDER BY /)));
  const trained = halves(guests.trainingQuestions);
  expect([...halves(guests.examQuestions)].filter((half) => !trained.has(half))).toEqual([]);
});

test('small questions are answered as their words say', () => {
  for (const { text, sql, isOrdered } of [...guests.trainingQuestions, ...guests.examQuestions])
    for (const database of parties) {
      const columns = database.query('SELECT name, age, days, team FROM guests');
      const people = columns.map(([name, age, days, team]) => ({ name, age, days, team }) as Guest);
      const isSame = sameRows(database.query(sql), answer(text, people), isOrdered);
      expect({ text, isSame }).toEqual({ text, isSame: true });
    }
});

test('each query of the full edition is within what its database allows, and finds something', () => {
  for (const { text, sql } of [...shop.trainingQuestions, ...shop.examQuestions]) {
    const rows = shops.flatMap((database) => database.query(sql));
    expect({ text, found: rows.length > 0 }).toEqual({ text, found: true });
  }
});

describe('a database', () => {
  const database = new Database('CREATE TABLE t (a INT, b TEXT)', {
    t: [
      [1, 'x'],
      [2, "y; it's (z)"],
      [3, null],
    ],
  });
  afterAll(() => database.close());

  test.each<[string, Rows]>([
    ['SELECT a FROM t WHERE a > 1', [[2], [3]]],
    [' select count(*), Max(a) from t;\n', [[3, 3]]],
    ['SELECT b FROM t WHERE a IN (SELECT 2)', [["y; it's (z)"]]],
    ["SELECT a FROM t WHERE b = 'y; it''s (z)'", [[2]]],
    ['SELECT b FROM t WHERE a = 3', [[null]]],
    ['SELECT a FROM t WHERE a = 4', []],
  ])('answers %j', (sql, rows) => {
    expect(database.query(sql)).toEqual(rows);
  });

  test.each([
    ['SELECT a FROM u', 'no such table: u'],
    ['SELECT a FROM t WHERE', 'incomplete input'],
    ['', 'a query must begin with SELECT'],
    ['DELETE FROM t', 'a query must begin with SELECT'],
    ["ATTACH 'file.db' AS other", 'a query must begin with SELECT'],
    ['PRAGMA query_only = 0', 'a query must begin with SELECT'],
    ['SELECT 1; DROP TABLE t', 'only one query may be given'],
    ['SELECT a FROM t WHERE random() > 0', 'the function random is not available'],
    ['SELECT hex(zeroblob (1e9))', 'the function hex is not available'],
    ["SELECT date('now')", 'the function date is not available'],
    ['SELECT "random"() FROM t', 'the function quoted is not available'],
    [`SELECT "a'", random(), "'b"`, 'the function random is not available'],
    ['SELECT a, a FROM t', 'columns must have different names'],
    ['SELECT random/**/()', 'comments are not available'],
    ['SELECT random -- ()\n()', 'comments are not available'],
    ['SELECT current_timestamp', 'current_timestamp is not available'],
    ['SELECT (WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c)', 'WITH is not available'],
    ['SELECT 1 FROM t, t b, t c, t d, t e', 'a query may read at most 4 tables, got 5'],
  ])('refuses %j', (sql, reason) => {
    expect(() => database.query(sql)).toThrow(reason);
    expect(database.query('SELECT count(*) FROM t')).toEqual([[3]]);
  });

  test('gives no endless rows', () => {
    const rows = Array.from({ length: 40 }, (_, index) => [index]);
    const wide = new Database('CREATE TABLE n (a INT)', { n: rows });
    expect(wide.query('SELECT x.a FROM n x, n y WHERE x.a < 25')).toHaveLength(1000);
    expect(() => wide.query('SELECT x.a FROM n x, n y')).toThrow('a query may return at most 1000 rows');
    wide.close();
  });
});

test.each<[Rows, Rows, boolean, boolean]>([
  [[[1], [2]], [[2], [1]], false, true],
  [[[1], [2]], [[2], [1]], true, false],
  [[[1], [1]], [[1]], false, false],
  [[[1, 'a']], [['a', 1]], false, false],
  [[['1']], [[1]], false, false],
  [[[0.1 + 0.2]], [[0.3]], false, true],
  [[[null]], [['null']], false, false],
  [[], [], true, true],
])('%j and %j in order %j are the same: %j', (left, right, isOrdered, same) => {
  expect(sameRows(left, right, isOrdered)).toBe(same);
});

describe('the reward', () => {
  const question = { text: 'Who is over 40?', sql: 'SELECT name FROM guests WHERE age > 40', isOrdered: false };
  const sorted = { ...question, sql: `${question.sql} ORDER BY age`, isOrdered: true };

  test.each([
    [question, question.sql, 1, true, true],
    [question, 'select s.name from guests s where not s.age <= 40 order by name;', 1, true, true],
    [sorted, `${question.sql} ORDER BY age ASC`, 1, true, true],
    [sorted, `${question.sql} ORDER BY age DESC`, 0.1, false, true],
    [question, 'SELECT name FROM guests WHERE age > 41', 0.1, false, true],
    [question, 'SELECT name, age FROM guests WHERE age > 40', 0.1, false, true],
    [question, 'SELECT name FROM gusts WHERE age > 40', 0, false, false],
    [question, 'I would say Ada.', 0, false, false],
    [question, '', 0, false, false],
  ] as const)('of %o for %j is %d', (asked, sql, reward, correct, runs) => {
    const graded = grade(sql, asked, parties);
    expect(graded).toMatchObject({ reward, metrics: { correct, runs } });
    expect(graded.complaint === null).toBe(runs);
  });

  test('is for what is right in all databases: right by chance in one is wrong', () => {
    const names = parties[0]!.query(question.sql).map(([name]) => `'${String(name)}'`);
    const byHeart = `SELECT name FROM guests WHERE name IN (${names.join(', ')})`;
    expect(grade(byHeart, question, parties.slice(0, 1)).reward).toBe(1);
    expect(grade(byHeart, question, parties).reward).toBe(0.1);
  });
});

describe('the chats of the warm start', () => {
  test('are examples of training questions with right queries, the same each time', () => {
    const chats = makeChats(40);
    expect(makeChats(40)).toBe(chats);
    const examples = parseChatExamples(chats, 'chats');
    const trained = new Map(guests.trainingQuestions.map((each) => [each.text, each]));
    expect(examples).toHaveLength(40);
    for (const { messages } of examples) {
      const [asked, answered] = messages.map(({ content }) => content as string);
      expect(grade(answered!, trained.get(asked!)!, parties).reward).toBe(1);
    }
  });
});

test('the small agent says a query, once', async () => {
  const [scenario] = guests.trainingQuestions;
  const engine = await startFakeEngine({ answer: () => scenario!.sql });
  const { reward, metrics } = await playOne(
    engine,
    (context) => small.rollout(context as never) as Promise<RolloutResult>,
    { scenario: scenario! },
  );
  expect({ reward, metrics }).toMatchObject({ reward: 1, metrics: { correct: true, runs: true } });
  expect(engine.executed.map(({ request }) => request.messages)).toEqual([[{ role: 'user', content: scenario!.text }]]);
  await engine.close();
});

test('the agent is told why its query does not run, and may correct it', async () => {
  const [scenario] = shop.trainingQuestions;
  const said = ['SELECT nobody', `Here:\n\`\`\`sql\n${scenario!.sql}\n\`\`\``];
  const engine = await startFakeEngine({ answer: ({ messages }) => said[(messages.length - 2) / 2]! });
  const { reward, metrics } = await playOne(
    engine,
    (context) => agent.rollout(context as never) as Promise<RolloutResult>,
    { scenario: scenario! },
  );
  expect(reward).toBeCloseTo(0.9);
  expect(metrics).toMatchObject({ correct: true, turns: 2 });
  expect(engine.executed[1]!.request.messages.at(-1)).toEqual({
    role: 'user',
    content: 'The query does not run: no such column: nobody.',
  });
  await engine.close();
});
