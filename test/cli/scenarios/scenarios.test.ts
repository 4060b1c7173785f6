/** `temper scenarios` against a scripted hosted model and a real MCP server. */
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { MadeScenario } from '../../../cli/scenarios/make-plan.ts';
import { readScenarios } from '../../../play/scenarios.ts';
import { temporaryProject } from '../fixture-store.ts';
import { runCli, type CliResult } from '../run-cli.ts';
import { startAuthor, type AuthorScript, type ScriptedAuthor } from './scripted-author.ts';

const MODEL = 'openai/gpt-5-mini';
const PRICE = ['--price', `${MODEL}=0.25/2`];
/** Cost of one call at that price, with the scripted model's usage. */
const CALL_USD = (1000 * 0.25 + 100 * 2) / 1e6;
const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');

let project: string;
beforeEach(async () => {
  project = temporaryProject();
});

async function open(script: AuthorScript): Promise<ScriptedAuthor> {
  const author = await startAuthor(script);
  onTestFinished(() => author.close());
  return author;
}

function scenarios(author: ScriptedAuthor, ...flags: string[]): Promise<CliResult> {
  const env = { OPENAI_BASE_URL: author.url, OPENAI_API_KEY: 'key' };
  return runCli(project, ['scenarios', '--model', MODEL, ...flags], { env });
}

const ADD = ['--from-task', 'Answer a question about numbers.'];
const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => [`Is ${from + index} prime?`, 1 + (index % 5)] as const);

interface View {
  readonly train: MadeScenario[];
  readonly heldOut: MadeScenario[];
  readonly infeasible: MadeScenario[];
  readonly tooEasy: MadeScenario[];
  readonly duplicates: number;
  readonly notes: string[];
  readonly cost: { readonly calls: number; readonly usd: number };
}

async function view(author: ScriptedAuthor, ...flags: string[]): Promise<View> {
  const { stdout, stderr, exitCode } = await scenarios(author, '--json', ...flags);
  expect(exitCode, stderr).toBe(0);
  return JSON.parse(stdout) as View;
}

const read = (name: string) => readFile(join(project, name), 'utf8');

test('near-duplicates and infeasible scenarios are left out, then always solved ones, and the rest is split by difficulty', async () => {
  const failed = new Set<string>();
  const author = await open({
    propose: ({ count }) => [...numbered(count), ['is 0  PRIME', 1]],
    // No attempt at 1 solves it, the first at an even number does not, and others always do.
    judge: (user) => {
      const number = /Is (\d) prime/.exec(user)![1]!;
      const isFirst = !failed.has(number);
      failed.add(number);
      return number !== '1' && (Number(number) % 2 === 1 || !isFirst);
    },
  });
  const made = await view(author, ...ADD, '--count', '6', '--held-out', '2', ...PRICE);
  expect(made.duplicates).toBe(1);
  expect(made.infeasible.map(({ task, explanation }) => [task, explanation])).toEqual([
    ['Is 1 prime?', 'it was not done'],
  ]);
  expect(made.tooEasy.map(({ task }) => task)).toEqual(['Is 7 prime?']);
  const kept = [...made.train, ...made.heldOut].map(({ task, solvedRate }) => `${task} ${solvedRate?.toFixed(2)}`);
  expect(kept.toSorted()).toEqual(
    [0, 2, 3, 4, 5, 6].map((number) => `Is ${number} prime? ${number % 2 === 0 ? '0.67' : '1.00'}`),
  );
  expect(made.notes).toEqual([`${MODEL} always solved 2 of the 6, which were kept because there are no others`]);
  expect(made.heldOut).toHaveLength(2);
  expect(made.cost).toMatchObject({
    calls: author.answered.length,
    usd: expect.closeTo(author.answered.length * CALL_USD, 8),
  });
  const rows = made.train.map(({ id, task, difficulty }) => ({ id, task, difficulty }));
  expect(await read('scenarios.jsonl')).toBe(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  expect(await readScenarios(pathToFileURL(join(project, 'scenarios.held-out.jsonl')), 100)).toEqual(
    made.heldOut.map(({ id, task, difficulty }) => ({ id, task, difficulty })),
  );
});

test('a later round is told what there is already, and what could not be done', async () => {
  const author = await open({
    propose: ({ round, count }) => (round === 1 ? numbered(count) : numbered(count, 50)),
    judge: (user) => !user.includes('Is 0 prime'),
  });
  await view(author, ...ADD, '--count', '4', '--attempts', '1');
  const [, second] = author.bodies.filter((body) => body.includes('"name":"scenarios"'));
  expect(second).toContain(String.raw`{\"task\":\"Is 0 prime?\",\"infeasible\":true}`);
  expect(second).toContain(String.raw`{\"task\":\"Is 3 prime?\"}`);
});

test('attempts call the tools of a real MCP server', async () => {
  const author = await open({
    propose: ({ count }) => Array.from({ length: count }, (_, index) => [`Add ${index} and 40.`, 2] as const),
    play: ({ messages }) => {
      const result = messages.findLast(({ role }) => role === 'tool');
      const a = Number(/\d+/.exec(messages[1]!.content)![0]);
      return result === undefined
        ? { call: ['get-sum', { a, b: 40 }] }
        : { call: ['complete_task', { summary: result.content }] };
    },
    judge: (user) => user.includes('is 40.') || user.includes('is 41.'),
  });
  const server = ['--from-mcp', `'${process.execPath}' "${EVERYTHING}"`, '--tools', 'get-sum'];
  const made = await view(author, ...server, '--count', '2', '--attempts', '1', '--max-turns', '3');
  expect([...made.train, ...made.heldOut].map(({ task }) => task).toSorted()).toEqual([
    'Add 0 and 40.',
    'Add 1 and 40.',
  ]);
  expect(author.answered.toSorted()).toEqual([
    'attempt',
    'attempt',
    'attempt',
    'attempt',
    'scenarios',
    'verdict',
    'verdict',
  ]);
  expect(author.bodies[1]).toContain('in at most 3 turns');
  const asked = author.bodies.find((body) => body.includes('"name":"scenarios"'))!;
  expect(asked).toContain(String.raw`{\"name\":\"get-sum\"`);
  const tools = (JSON.parse(author.bodies[1]!) as { tools: { function: { name: string } }[] }).tools;
  expect(tools.map((tool) => tool.function.name)).toEqual(['get-sum', 'complete_task']);
});

test('a budget ends the command with what to do, and a higher one continues without asking anything twice', async () => {
  const author = await open({ propose: ({ count }) => numbered(count) });
  const flags = [...ADD, '--count', '4', '--concurrency', '1', ...PRICE];
  const stopped = await scenarios(author, ...flags, '--max-cost-usd', String(2.5 * CALL_USD));
  expect(stopped.exitCode).toBe(2);
  expect(stopped.stderr.split('\n').at(-1)).toBe(
    'temper: --max-cost-usd 0.001125 is used up: 3 answers, 3300 tokens, $0.00135 so far; run the same command with a higher --max-cost-usd to continue',
  );
  expect(author.answered).toHaveLength(3);
  expect((await scenarios(author, ...flags, '--max-cost-usd', String(2.5 * CALL_USD))).exitCode).toBe(2);
  expect(author.answered).toHaveLength(3);
  const made = await view(author, ...flags, '--max-cost-usd', '1');
  expect(made.cost.calls).toBe(author.answered.length);
  expect(new Set(author.bodies).size).toBeGreaterThan(3);
  const files = [await read('scenarios.jsonl'), await read('scenarios.held-out.jsonl')];
  const before = author.answered.length;
  await view(author, ...flags);
  expect(author.answered).toHaveLength(before);
  expect([await read('scenarios.jsonl'), await read('scenarios.held-out.jsonl')]).toEqual(files);
});

test('a file that was edited is not overwritten, and nothing is asked; one as it was written is replaced', async () => {
  const author = await open({ propose: ({ round, count }) => numbered(count, 100 * round) });
  await view(author, ...ADD, '--count', '3', '--attempts', '0');
  await view(author, ...ADD, '--count', '4', '--attempts', '0');
  expect(author.answered).toHaveLength(2);
  await writeFile(join(project, 'scenarios.held-out.jsonl'), '{"id":"mine","task":"…","difficulty":1}\n');
  const refused = await scenarios(author, ...ADD, '--count', '5', '--attempts', '0');
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toBe(
    `temper: ${join(project, 'scenarios.held-out.jsonl')} must be a new file, or one that Temper wrote and nobody edited, but it is neither; move it away, or choose another place`,
  );
  expect(author.answered).toHaveLength(2);
});

test('an unusable answer is asked for again with what was wrong, and a server that knows no schemas without one', async () => {
  let asks = 0;
  const author = await open({
    propose: () => [],
    garble: ({ response_format: form }) => {
      if (form !== undefined) return { status: 400, content: 'response_format is not supported' };
      asks += 1;
      if (asks === 1) return { content: 'Here you are: 1. Is 7 prime?' };
      if (asks === 2) return { content: '{"scenarios":[{"task":"Is 7 prime?","difficulty":9}]}' };
      return {
        content:
          '```json\n{"scenarios":[{"task":"Is 7 prime?","difficulty":5},{"task":"Is 8 prime?","difficulty":1}]}\n```',
      };
    },
  });
  const made = await view(author, ...ADD, '--count', '2', '--attempts', '0');
  expect(made.train.length + made.heldOut.length).toBe(2);
  const complaints = author.bodies.flatMap((body) => /could not be used: (.*?)\. Answer again/.exec(body)?.[1] ?? []);
  expect(new Set(complaints)).toEqual(
    new Set(['it was not JSON and nothing else', 'each difficulty must be a whole number from 1 to 5']),
  );
});

test('too few scenarios are written with a note, and none at all is an error that says how many came', async () => {
  const author = await open({ propose: ({ round }) => (round === 1 ? numbered(3) : numbered(1)) });
  const made = await view(author, ...ADD, '--count', '6', '--attempts', '0');
  expect(made.train.length + made.heldOut.length).toBe(3);
  expect(made.notes).toEqual(['3 of 6 scenarios could be made; run it with other --instructions for more']);
  const none = await open({ propose: () => numbered(2), judge: () => false });
  const failed = await scenarios(none, '--from-task', 'Other.', '--count', '6', '--out', 'other.jsonl');
  expect(failed.exitCode).toBe(1);
  expect(failed.stderr.split('\n').at(-1)).toBe(
    `temper: ${MODEL} proposed 10 scenarios, 8 of them near-duplicates and 2 never solved: 0 of 6 can be used; pass --instructions, or another --model or --try-with`,
  );
});
