import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, expectTypeOf, test } from 'vitest';

import type { Scenario, ScenarioSource } from '../../../play/agent.ts';
import { locateScenarios, readScenarios } from '../../../play/scenarios.ts';
import { csv, defineAgent, jsonl, parquet, sqlite } from '../../../sdk/index.ts';
import { asLz4, fileOf, parquetFile, sqliteFile } from './files.ts';

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
  ['UTF-16', () => csv(fileOf('rows.csv', Buffer.from(CSV, 'utf16le')))],
  ['semicolons', () => csv(fileOf('rows.csv', CSV.replaceAll(/,(?! )/g, ';')), { delimiter: ';' })],
  ['Parquet', () => parquet(parquetFile([ids, questions]))],
  ['Parquet by its ending, in several row groups', () => parquetFile([ids, questions], { rowGroupSize: 2 })],
  ['SQLite', () => sqlite(sqliteFile(TABLE), SELECT)],
  [
    'JSON lines',
    () => jsonl(fileOf('rows.jsonl', `\uFEFF${QUESTIONS.map((row) => `${JSON.stringify(row)}\n`).join('\n')}`)),
  ],
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
  const agent = defineAgent({ name: 'quiz', scenarios: csv('rows.csv'), evalScenarios: './rows.csv', rollout });
  const { scenarios, evalScenarios = [] } = locateScenarios(agent, `${dirname(file)}/agent.ts`);
  expect(evalScenarios).toBe(file);
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

test.each<[unknown, RegExp]>([
  [[{ bytes: new Uint8Array(3) }], /^scenario 0 must be JSON, but bytes holds bytes; make a text/],
  [Number('eleven'), /^scenario 0 must be JSON, but n holds NaN; make a text or a finite number of it/],
  [[Infinity], /but a list holds Infinity/],
  [new Date(NaN), /but n holds a date that is none/],
  [2n ** 60n, /but n holds the integer 1152921504606846976, which a number may not hold exactly/],
  [new Map([['a', 1]]), /but n holds a Map/],
])('%o is refused, which JSON would change without a word', async (n, message) => {
  await expect(read([{ id: 'a', n } as Scenario])).rejects.toThrow(message);
});

test('a column without values is read from a file that LZ4 compresses', async () => {
  const empty = { name: 'empty', data: [null, null, null], type: 'STRING' as const };
  const file = parquetFile([ids, empty], { codec: 'LZ4_RAW', compressors: { LZ4_RAW: asLz4 } });
  expect((await read(parquet(file))).at(-1)).toEqual({ id: 'c', empty: null });
});

test('a query of which the first rows are read leaves the database open to others', async () => {
  const file = sqliteFile(TABLE);
  for (const limit of [1, 100])
    expect(await readScenarios(sqlite(file, SELECT), limit)).toHaveLength(Math.min(limit, 3));
  const open = sqlite(file, SELECT)[Symbol.asyncIterator]();
  expect((await open.next()).value).toEqual(QUESTIONS[0]);
  expect(await read(sqlite(file, SELECT))).toEqual(QUESTIONS);
  await open.return?.(undefined);
  expect(readdirSync(dirname(file))).toEqual(['rows.db']);
});

test('integers of SQLite beyond those of a number are for map alone', async () => {
  const file = sqliteFile('create table t (id text, n integer); insert into t values (1, 9007199254740993)');
  const map = ({ id, n }: { id: string; n: bigint }) => ({ id, n: String(n) });
  expect(await read(sqlite(file, 'select * from t', { map }))).toEqual([{ id: '1', n: '9007199254740993' }]);
  await expect(read(sqlite(file, 'select * from t'))).rejects.toThrow('but n holds the integer 9007199254740993');
});

test.each<[string, () => ScenarioSource<Scenario>, RegExp]>([
  [
    'another encoding',
    () => csv(fileOf('rows.csv', Buffer.from('id,name\na,b\nb,caf\xe9\n', 'latin1'))),
    /rows\.csv must be UTF-8, but line 3 has other bytes; save it as UTF-8/,
  ],
  [
    'another encoding of JSON lines, at the end of the file',
    () => fileOf('rows.jsonl', Buffer.from('{"id":"a"}\n{"id":"\xc3', 'latin1')),
    /rows\.jsonl must be UTF-8, but line 2 has other bytes/,
  ],
  [
    'another delimiter',
    () => csv(fileOf('rows.csv', 'id;n\na;1\n')),
    /columns of .* must be separated by commas, got \["id;n"\]; pass csv\(…, { delimiter: ";" }\)/,
  ],
  ['the index of a data frame', () => csv(fileOf('rows.csv', ',id\n0,a\n')), /names of their own, .*index=False/],
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
  [
    'two columns of one name in a Parquet file',
    () => parquet(parquetFile([ids, ids])),
    /columns of .* must have names of their own, got \["id","id"\]; write it anew/,
  ],
  ...['select id, question, id from tasks', 'with t as (select * from tasks) select t.id, u.id from t, tasks u; -- all'].map(
    (query): [string, () => ScenarioSource<Scenario>, RegExp] => [
      `two columns of one name in ${query}`,
      () => sqlite(sqliteFile(TABLE), query),
      /columns of the query on .* must have names of their own, got \["id",.*"id"\]; name them with "as"/,
    ],
  ),
  [
    'a later row that SQLite cannot read',
    () => sqlite(sqliteFile(TABLE), `select id, json(iif(id = 'a', '1', '{')) from tasks`),
    /row 2 of the query on .*rows\.db cannot be read: malformed JSON; correct the query/,
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
    'map is async',
    () => csv(fileOf('rows.csv', CSV), { map: (async (row: Scenario) => row) as never }),
    /^map must make a scenario of each row, but it threw at line 2 of .*: Error: it returned a promise, and must not be async/,
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

test.each<[() => unknown, string]>([
  [() => csv(''), 'csv must be given a path or a file URL, got ""; pass a path such as'],
  [() => parquet(new URL('https://example.com/a.parquet')), 'parquet must be given a path or a file URL'],
  [() => csv('a.csv', { map: 'id' as never }), 'map of csv must be a function, got "id"'],
  [() => csv('a.csv', { delimiter: '' }), 'delimiter of csv must be a text, got ""'],
  [() => sqlite('a.db', ' '), 'sqlite must be given a query, got " "'],
])('%s is refused at once', (make, message) => {
  expect(make).toThrow(message);
});
