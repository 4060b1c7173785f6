/** Text to SQL: questions with answers, a database that runs one harmless query, and both editions played. */
import { afterAll, describe, expect, test } from 'vitest';
import { parseChatExamples } from '../../core/chat-examples.ts';
import agent from '../../examples/text-to-sql/agent.ts';
import { makeChats } from '../../examples/text-to-sql/chats.ts';
import { Database } from '../../examples/text-to-sql/database.ts';
import { grade, type Question } from '../../examples/text-to-sql/grade.ts';
import * as guests from '../../examples/text-to-sql/guests.ts';
import * as shop from '../../examples/text-to-sql/shop-questions.ts';
import { openShop } from '../../examples/text-to-sql/shop.ts';
import small from '../../examples/text-to-sql/small-sql.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const parties = [1, 2, 3].map(guests.openGuests);
const shops = [1, 2, 3, 4, 5].map(openShop);
const table = new Database('CREATE TABLE t (a INT, b TEXT)', {
  t: [
    [1, 'x'],
    [2, "y; it's (z)"],
    [3, null],
  ],
});
afterAll(() => {
  for (const database of [...parties, ...shops, table]) database.close();
});

describe.each([
  ['the small edition', guests, parties],
  ['the full edition', shop, shops],
] as const)('questions of %s', (_, { trainingQuestions, examQuestions }, databases) => {
  test('are trained or held out, never both', () => {
    const trained = new Set(trainingQuestions.map(({ text }) => text));
    expect(examQuestions.filter(({ text }) => trained.has(text))).toEqual([]);
    const ids = [...trainingQuestions, ...examQuestions].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('have answers, of which no two are the same in all databases', () => {
    const all = new Map<string, Question>([...trainingQuestions, ...examQuestions].map((each) => [each.text, each]));
    const answered = [...all.values()].map(({ text, sql, isOrdered }) => {
      const rows = databases.map((database) => database.query(sql).map((row) => row.join(',')));
      expect({ text, isFound: rows.flat().length > 0 }).toEqual({ text, isFound: true });
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

test.each([
  ['SELECT a FROM u', 'no such table: u'],
  ['DELETE FROM t', 'a query must begin with SELECT'],
  ["ATTACH 'file.db' AS other", 'a query must begin with SELECT'],
  ['SELECT 1; DROP TABLE t', 'only one query may be given'],
  ['SELECT a FROM t WHERE random() > 0', 'the function random is not available'],
  ['SELECT hex(zeroblob (1e9))', 'the function hex is not available'],
  ['SELECT "random"() FROM t', 'the function quoted is not available'],
  ['SELECT random/**/()', 'comments are not available'],
  ['SELECT current_timestamp', 'current_timestamp is not available'],
  ['SELECT (WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c)', 'WITH is not available'],
  ['SELECT 1 FROM t, t b, t c, t d, t e', 'a query may read at most 4 tables, got 5'],
])('a database refuses %j', (sql, reason) => {
  expect(() => table.query(sql)).toThrow(reason);
  expect(table.query('SELECT count(*) FROM t')).toEqual([[3]]);
});

test('a database gives no endless rows', () => {
  const rows = Array.from({ length: 40 }, (_, index) => [index]);
  const wide = new Database('CREATE TABLE n (a INT)', { n: rows });
  expect(() => wide.query('SELECT x.a FROM n x, n y')).toThrow('a query may return at most 1000 rows');
  wide.close();
});

const QUESTION = { text: 'Who is over 40?', sql: 'SELECT name FROM guests WHERE age > 40', isOrdered: false };
const SORTED = { ...QUESTION, sql: `${QUESTION.sql} ORDER BY age`, isOrdered: true };

test.each([
  [QUESTION, 'select s.name from guests s where not s.age <= 40 order by name;', 1, true],
  [SORTED, `${QUESTION.sql} ORDER BY age DESC`, 0.1, true],
  [QUESTION, 'SELECT name, age FROM guests WHERE age > 40', 0.1, true],
  [QUESTION, 'I would say Ada.', 0, false],
] as const)('the reward of %o for %j is %d', (asked, sql, reward, runs) => {
  const graded = grade(sql, asked, parties);
  expect(graded).toMatchObject({ reward, metrics: { correct: reward === 1, runs } });
  expect(graded.complaint === null).toBe(runs);
});

test('what is right by chance in one database is wrong', () => {
  const names = parties[0]!.query(QUESTION.sql).map(([name]) => `'${String(name)}'`);
  const byHeart = `SELECT name FROM guests WHERE name IN (${names.join(', ')})`;
  expect(grade(byHeart, QUESTION, parties.slice(0, 1)).reward).toBe(1);
  expect(grade(byHeart, QUESTION, parties).reward).toBe(0.1);
});

test('the chats of the warm start are training questions with right queries, the same each time', () => {
  const chats = makeChats(40);
  expect(makeChats(40)).toBe(chats);
  const trained = new Map(guests.trainingQuestions.map((each) => [each.text, each]));
  for (const { messages } of parseChatExamples(chats, 'chats')) {
    const [asked, answered] = messages.map(({ content }) => content as string);
    expect(grade(answered!, trained.get(asked!)!, parties).reward).toBe(1);
  }
});

test('the small agent says a query, once', async () => {
  const scenario = guests.trainingQuestions[0]!;
  const played = await playAgent(small, { scenario, answers: [scenario.sql] });
  expect(played).toMatchObject({ reward: 1, metrics: { correct: true, runs: true } });
  expect(played.calls[0]!.request.messages).toEqual([{ role: 'user', content: scenario.text }]);
});

test('the agent is told why its query does not run, and may correct it', async () => {
  const scenario = shop.trainingQuestions[0]!;
  const answers = ['SELECT nobody', `Here:\n\`\`\`sql\n${scenario.sql}\n\`\`\``];
  const { reward, metrics, calls } = await playAgent(agent, { scenario, answers });
  expect(reward).toBeCloseTo(0.9);
  expect(metrics).toMatchObject({ correct: true, turns: 2 });
  expect(calls[1]!.request.messages.at(-1)).toEqual({
    role: 'user',
    content: 'The query does not run: no such column: nobody.',
  });
});
