import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, expectTypeOf, test } from 'vitest';

import type { Scenario, ScenarioSource } from '../../../play/agent.ts';
import { checkUnique, locateScenarios, readScenarios } from '../../../play/scenarios.ts';
import { csv, defineAgent, jsonl, parquet, sqlite } from '../../../sdk/index.ts';
import { fileOf, parquetFile, sqliteFile } from './files.ts';

const read = (source: ScenarioSource<Scenario>) => readScenarios(source, 100);
const CSV = '\uFEFFid,question\r\na,"1 + 1, quickly"\r\n\r\nb,"two\nlines"\r\nc,"so-called ""quotes"""\r\n';
const QUESTIONS = [
  { id: 'a', question: '1 + 1, quickly' },
  { id: 'b', question: 'two\nlines' },
  { id: 'c', question: 'so-called "quotes"' },
];
const TABLE = `create table tasks (id text, question text);
  insert into tasks values ('a', '1 + 1, quickly'), ('b', 'two' || char(10) || 'lines'), ('c', 'so-called "quotes"')`;
const ids = { name: 'id', data: ['a', 'b', 'c'] };
const questions = { name: 'question', data: QUESTIONS.map(({ question }) => question) };
const SELECT = 'select id, question from tasks order by id';

test.each<[string, () => ScenarioSource<Scenario>]>([
  ['CSV', () => csv(fileOf('rows.csv', CSV))],
  ['CSV by a URL', () => csv(pathToFileURL(fileOf('rows.csv', CSV)))],
  ['CSV by its ending', () => fileOf('rows.csv', CSV)],
  ['tabs by the ending', () => fileOf('rows.TSV', CSV.replaceAll(/,(?! )/g, '\t'))],
  ['semicolons', () => csv(fileOf('rows.csv', CSV.replaceAll(/,(?! )/g, ';')), { delimiter: ';' })],
  ['Parquet', () => parquet(parquetFile([ids, questions]))],
  ['Parquet by its ending, in several row groups', () => parquetFile([ids, questions], 2)],
  ['SQLite', () => sqlite(sqliteFile(TABLE), SELECT)],
  ['JSON lines', () => jsonl(fileOf('rows.jsonl', QUESTIONS.map((row) => `${JSON.stringify(row)}\n`).join('\n')))],
])('%s gives the same scenarios', async (_what, source) => {
  expect(await read(source())).toEqual(QUESTIONS);
});

test('map makes scenarios of rows, gets their index, and leaves out those for which it returns null', async () => {
  const map = (row: { question: string }, index: number) =>
    index === 1 ? null : { id: `q${index}`, length: row.question.length };
  const expected = [
    { id: 'q0', length: 14 },
    { id: 'q2', length: 18 },
  ];
  const files = [csv(fileOf('rows.csv', CSV), { map }), parquet(parquetFile([questions]), { map })];
  for (const source of [...files, sqlite(sqliteFile(TABLE), SELECT, { map })])
    expect(await read(source)).toEqual(expected);
});

test('a path is relative to the file of the agent, and a source is read as often as it is asked', async () => {
  const file = fileOf('rows.csv', CSV);
  const rollout = () => 1;
  const agent = defineAgent({ name: 'quiz', scenarios: csv('rows.csv'), evalScenarios: csv('./rows.csv'), rollout });
  const { scenarios, evalScenarios = [] } = locateScenarios(agent, `${dirname(file)}/agent.ts`);
  for (const source of [scenarios, evalScenarios, scenarios]) expect(await read(source)).toEqual(QUESTIONS);
});

test('scenarios have the type that map returns, or that the agent names', () => {
  const map = ({ n }: { n: string }, index: number) => ({ id: String(index), n: Number(n) });
  defineAgent({
    name: 'mapped',
    scenarios: csv('rows.csv', { map }),
    rollout({ scenario }) {
      expectTypeOf(scenario).toEqualTypeOf<{ id: string; n: number }>();
      return scenario.n;
    },
  });
  defineAgent<Scenario & { question: string }>({
    name: 'named',
    scenarios: csv('rows.csv'),
    rollout: ({ scenario }) => scenario.question.length,
  });
});

test('whole numbers of 64 bits are numbers where these are exact, and else for map alone', async () => {
  const column = (data: bigint[]) => ({ name: 'n', data, type: 'INT64' as const });
  const exact = parquet(parquetFile([ids, column([1n, 2n, 2n ** 53n - 1n])]));
  expect((await read(exact)).at(-1)).toEqual({ id: 'c', n: Number.MAX_SAFE_INTEGER });
  const large = parquetFile([ids, column([1n, 2n, 2n ** 53n])]);
  await expect(read(parquet(large))).rejects.toThrow(`row 3 of ${large} must be JSON`);
  const map = ({ id, n }: { id: string; n: number | bigint }) => ({ id, n: String(n) });
  expect((await read(parquet(large, { map }))).at(-1)).toEqual({ id: 'c', n: '9007199254740992' });
});

test('bytes are refused, which JSON would make an object of numbers', async () => {
  const file = parquetFile([ids, { name: 'image', data: ids.data.map(() => new Uint8Array(3)), type: 'BYTE_ARRAY' }]);
  await expect(read(parquet(file))).rejects.toThrow(/row 1 of .* must be JSON, but image holds bytes; .* map/);
});

test.each<[string, () => ScenarioSource<Scenario>, RegExp]>([
  [
    'a row without an id',
    () => csv(fileOf('rows.csv', 'id,n\na,1\n,2\n')),
    /^line 3 of .*rows\.csv must be an object with a non-empty string id, got {"id":"","n":"2"}; add a column id, or pass map/,
  ],
  [
    'a table without a column id',
    () => parquet(parquetFile([questions])),
    /^row 1 of .*rows\.parquet must be an object with a non-empty string id, .*; add a column id, or pass map: \(row, index\)/,
  ],
  [
    'a record with too few fields',
    () => csv(fileOf('rows.csv', 'id,n\na,1\nb\n')),
    /rows\.csv cannot be read: .*columns length is 2, got 1 on line 3; the first line names/,
  ],
  [
    'an open quote',
    () => csv(fileOf('rows.csv', 'id,n\na,"1')),
    /rows\.csv cannot be read: Quote Not Closed.* at line 2;/,
  ],
  [
    'two columns of one name',
    () => csv(fileOf('rows.csv', 'id,id\na,b\n')),
    /columns of .* must have names of their own/,
  ],
  ['a missing CSV file', () => csv('/nowhere/rows.csv'), /^\/nowhere\/rows\.csv cannot be read: ENOENT/],
  [
    'a missing Parquet file',
    () => parquet('/nowhere/rows.parquet'),
    /^\/nowhere\/rows\.parquet cannot be read: ENOENT/,
  ],
  [
    'text in a Parquet file',
    () => parquet(fileOf('rows.parquet', 'id\na\n')),
    /rows\.parquet cannot be read: .*parquet/,
  ],
  [
    'a missing database',
    () => sqlite('/nowhere/a.db', SELECT),
    /^\/nowhere\/a\.db cannot be read: there is no such file/,
  ],
  [
    'a column that a query asks for and no table has',
    () => sqlite(sqliteFile(TABLE), 'select name from tasks'),
    /the query on .*rows\.db cannot be read: .*no such column: name; correct the query/,
  ],
  [
    'text in a database',
    () => sqlite(fileOf('rows.db', 'id,question\n'.repeat(100)), SELECT),
    /the query on .* cannot be read: .*not a database/,
  ],
  [
    'a column that map asks for',
    () => csv(fileOf('rows.csv', CSV), { map: (row: { title: string }) => ({ id: row.title }) }),
    /map must make a scenario of each row, but it threw at line 2 of .*rows\.csv: Error: .* has no column "title", only id, question; correct map/,
  ],
  [
    'map throws',
    () => csv(fileOf('rows.csv', CSV), { map: ({ id = '' }) => ({ id, question: JSON.parse(id) as unknown }) }),
    /^map must make a scenario of each row, but it threw at line 2 of .*rows\.csv: SyntaxError: .*; correct map, or return null/,
  ],
  [
    'map returns nothing',
    () => jsonl(fileOf('rows.jsonl', '{"id":"a"}\n'), { map: () => undefined as never }),
    /^line 1 of .*rows\.jsonl must be an object with a non-empty string id, got null; return one from map$/,
  ],
])('%s is named with its place', async (_what, source, message) => {
  const error = await read(source()).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ type: 'BadConfig', message: expect.stringMatching(message) as string });
  expect((error as Error).message).not.toContain('\n');
});

test('an id that stands twice is named with both rows', async () => {
  const file = parquetFile([{ name: 'id', data: ['a', 'b', 'a'] }]);
  const scenarios = await read(parquet(file));
  expect(() => checkUnique({ scenarios })).toThrow(`got "a" at row 1 of ${file} and row 3 of ${file}; rename one`);
});

test.each<[() => unknown, string]>([
  [() => csv(''), 'csv must be given a path or a file URL, got ""; pass a path such as'],
  [() => parquet(new URL('https://example.com/a.parquet')), 'parquet must be given a path or a file URL'],
  [() => csv('a.csv', { map: 'id' as never }), 'map of csv must be a function, got "id"'],
  [() => csv('a.csv', { delimiter: '' }), 'delimiter of csv must be a text, got ""'],
  [() => sqlite('a.db', ' '), 'sqlite must be given a query, got " "'],
])('%s is refused at once', (make, message) => {
  expect(make).toThrow(message);
});
