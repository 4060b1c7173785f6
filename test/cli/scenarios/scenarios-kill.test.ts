/** The command as a process, killed at several calls: the files are the same, and no answer is paid for twice. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startCommand, temperCommand } from '../../stack.ts';
import { temporaryProject } from '../fixture-store.ts';
import { runCli } from '../run-cli.ts';
import { startAuthor, type AuthorScript, type ScriptedAuthor } from './scripted-author.ts';

const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');
const FLAGS = ['--model', 'openai/gpt-5-mini', '--count', '2', '--attempts', '1', '--concurrency', '1'];
const ARGUMENTS = ['scenarios', '--from-mcp', `node ${EVERYTHING}`, '--tools', 'get-sum', ...FLAGS];

const script: AuthorScript = {
  propose: () => [
    ['Add 2 and 40.', 1],
    ['Add 3 and 40.', 4],
  ],
  play: ({ messages }) =>
    messages.some(({ role }) => role === 'tool')
      ? { call: ['complete_task', { summary: messages.findLast(({ role }) => role === 'tool')!.content }] }
      : { call: ['get-sum', { a: Number(/\d/.exec(messages[1]!.content)![0]), b: 40 }] },
};

interface Generated {
  readonly files: readonly string[];
  readonly answered: readonly string[];
  readonly bodies: readonly string[];
}

/** `run` gets the project's folder and the environment; it may tell the author what to do at a call. */
async function generate(
  run: (project: string, env: NodeJS.ProcessEnv, author: ScriptedAuthor) => Promise<void>,
): Promise<Generated> {
  const project = temporaryProject();
  const author = await startAuthor(script);
  onTestFinished(() => author.close());
  await run(project, { PATH: process.env['PATH'], OPENAI_BASE_URL: author.url, OPENAI_API_KEY: 'key' }, author);
  const read = (name: string) => readFile(join(project, name), 'utf8');
  const files = [await read('scenarios.jsonl'), await read('scenarios.held-out.jsonl')];
  return { files, answered: author.answered, bodies: author.bodies };
}

/** The process is killed when it makes one of these calls; a last one comes to its end. */
async function generateKilled(
  kills: readonly number[],
  ...[project, env, author]: Parameters<Parameters<typeof generate>[0]>
) {
  const start = () => startCommand(project, [...temperCommand(), ...ARGUMENTS], env);
  for (const call of kills) {
    const { child, ended } = start();
    author.onCall = () => author.answered.length + 1 < call || !child.kill('SIGKILL');
    await ended;
    expect(child.signalCode).toBe('SIGKILL');
  }
  author.onCall = () => true;
  expect((await start().ended).code).toBe(0);
}

test('killed before an attempt, in the middle of one after its tool answered, and before a verdict', async () => {
  const undisturbed = await generate(async (project, env) => {
    expect(await runCli(project, ARGUMENTS, { env })).toMatchObject({ exitCode: 0 });
  });
  const calls = ['scenarios', 'attempt', 'attempt', 'verdict', 'attempt', 'attempt', 'verdict'];
  expect(undisturbed.answered).toEqual(calls);
  expect(await generate((...place) => generateKilled([2, 3, 7], ...place))).toEqual(undisturbed);
}, 600_000);
