/** `temper distill --attempts` on what `temper try --save` wrote; what is taken of attempts: distilled-chats.test.ts. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import type { FakeRequest } from '../fake-engine.ts';
import { rolloutsKey } from '../../store/layout.ts';
import { decodeRollouts, encodeRollouts } from '../../store/records/groups/trajectories.ts';
import { writeFixtureRun } from './fixture-store.ts';
import { runCli } from './run-cli.ts';
import { makeProject, runTry, writeAsking } from './tried-project.ts';

let project: string;
beforeEach(async () => {
  project = await makeProject();
});

const distill = (...more: string[]) => runCli(project, ['distill', '--out', 'best.jsonl', ...more]);
const chats = async () =>
  (await readFile(join(project, 'best.jsonl'), 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown);

test('a hosted teacher’s best attempts become chats to train on', async () => {
  await writeAsking(project, "return scenario.id === 'b' ? 1 : 0.5;");
  const answer = ({ messages }: FakeRequest) => ({
    content: messages[0]!.content!.toUpperCase(),
    thoughts: 'a letter',
  });
  await runTry(project, ['--save', 'kept', '--attempts', '1'], { answer });
  const { exitCode, stdout } = await distill('--attempts', 'kept', '--top', '60%');
  expect({ exitCode, stdout: stdout.replace(project, '…') }).toEqual({
    exitCode: 0,
    stdout: '2 of 3 attempts, reward 1.000 to 0.500: 2 examples in …/best.jsonl',
  });
  const user = (content: string) => ({ role: 'user', content });
  const said = (content: string) => ({ role: 'assistant', content, reasoning_content: 'a letter' });
  const chatOf = (id: string) => [user(id), said(id.toUpperCase()), user('Again, please'), said(id.toUpperCase())];
  expect(await chats()).toEqual([
    { messages: chatOf('b'), metadata: { scenario: 1, attempt: 0, reward: 1 } },
    { messages: chatOf('a'), metadata: { scenario: 0, attempt: 0, reward: 0.5 } },
  ]);
});

test('cut, failed and held-out attempts are not taken, and what holds none is refused', async () => {
  await writeAsking(project, "if (scenario.id === 'a') throw new Error('lost'); return 1;", {
    evals: "evalScenarios: [{ id: 'z' }],",
  });
  await runTry(project, ['--save', 'kept', '--scenario', 'a']);
  await runTry(project, ['--save', 'kept', '--eval', '--attempts', '1']);
  await runTry(project, ['--save', 'kept', '--scenario', 'b', '--attempts', '1'], {
    answer: () => ({ content: 'B', finishReason: 'length' }),
  });
  const none = await distill('--attempts', 'kept', '--top', '100%');
  expect(none.stderr).toContain('kept must have attempts to take, but 100% of its 0 attempts with a reward are none');
  await runTry(project, ['--save', 'kept', '--scenario', 'c', '--attempts', '1']);
  expect((await distill('--attempts', 'kept', '--top', '100%')).stdout).toContain('1 of 1 attempt, reward');
  await writeFile(join(project, 'kept', 'notes.json'), '{}');
  const refused = [
    ['--attempts', 'kept'],
    ['--attempts', 'nowhere'],
    ['--attempts', '.'],
    [],
    ['demo', '--attempts', 'kept'],
  ];
  const told = await Promise.all(refused.map((more) => distill(...more, '--top', '9%')));
  expect(told.map(({ exitCode }) => exitCode)).toEqual([2, 2, 2, 2, 2]);
  const rules = [
    'notes.json must be an attempt that temper try',
    'a folder that can be read',
    'package.json must be an attempt',
    'come from one place',
    'come from one place',
  ];
  for (const [index, { stderr }] of told.entries()) expect(stderr).toContain(rules[index]);
});

test('attempts of a run that were cut are not taken', async () => {
  const store = await writeFixtureRun(project, { steps: 1 });
  const key = rolloutsKey({ run: 'demo', branch: 0, step: 1, group: 0 });
  const { header, attempts } = await decodeRollouts((await store.read(key))!, key);
  const cut = attempts.map((attempt) => ({ ...attempt, truncated: true }));
  await store.replace(key, await encodeRollouts({ header, attempts: cut }));
  expect((await distill('demo', '--top', '100%')).stdout).toContain('56 of 56 attempts');
});

test('a file that is there stays as it is, and one that no command has saved is named with what it lacks', async () => {
  await writeAsking(project, 'return 1;');
  await runTry(project, ['--save', 'kept', '--scenario', 'a', '--attempts', '1']);
  await writeFile(join(project, 'best.jsonl'), 'mine');
  const taken = await distill('--attempts', 'kept', '--top', '100%');
  expect(taken).toMatchObject({ exitCode: 2 });
  expect(taken.stderr).toContain(`--out must be a new file, but ${join(project, 'best.jsonl')} exists`);
  expect(await readFile(join(project, 'best.jsonl'), 'utf8')).toBe('mine');
  expect((await readdir(project)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  const [name] = await readdir(join(project, 'kept'));
  const file = join(project, 'kept', name!);
  const saved = JSON.parse(await readFile(file, 'utf8')) as { calls: { request: object }[] };
  await writeFile(file, JSON.stringify({ ...saved, calls: [{ ...saved.calls[0], request: {} }] }));
  const lacking = await distill('--attempts', 'kept', '--top', '100%');
  expect(lacking).toMatchObject({ exitCode: 2 });
  expect(lacking.stderr).toContain(
    `${name} must be an attempt that temper try --save has written: calls.0.request.messages`,
  );
  const nowhere = await runCli(project, ['distill', '--attempts', 'kept', '--top', '100%', '--out', 'no/such/x.jsonl']);
  expect(nowhere).toMatchObject({ exitCode: 2 });
});
