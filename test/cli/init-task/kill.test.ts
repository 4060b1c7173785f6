/** `temper init --task` in processes that are killed at each part: the same files, and no answer is asked for twice. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { startCommand, temperCommand } from '../../stack.ts';
import { until } from '../../until.ts';
import { taskProject, WORDS, type TaskProject } from './task-project.ts';
import { startWriter } from './scripted-writer.ts';

const FILES = ['scenarios.jsonl', 'scenarios.held-out.jsonl', 'agent.ts', 'rubric-check.json', 'temporal.config.ts'];
const COUNT = 4;
/** Proposals, tries with their verdicts; the agent; three samples with their verdicts. */
const [SCENARIOS, AGENT, RUBRIC] = [1 + 2 * COUNT, 1, 3 + 3];
/** Answers after which the command is killed: in each part, and between two of them. */
const KILLS = [SCENARIOS - 3, SCENARIOS, SCENARIOS + AGENT + RUBRIC - 1];

const writer = await startWriter();
afterAll(() => writer.close());

const words = () => [...WORDS, '--writer', `${writer.url}#writer`, '--count', String(COUNT)];

/** Answers in the folder's store: one that the writer has sent may not have arrived. */
function storedIn(folder: string): number {
  const generated = join(folder, '.temper', 'store', 'generated');
  const works = existsSync(generated) ? readdirSync(generated) : [];
  const folders = works.map((work) => join(generated, work, 'answers')).filter((answers) => existsSync(answers));
  return folders.flatMap((answers) => readdirSync(answers)).filter((name) => /^\w+\.json$/.test(name)).length;
}

async function killAfter(answers: number, { cwd, folder }: TaskProject): Promise<void> {
  writer.onCall = () => writer.answered.length < answers;
  const { child, ended } = startCommand(cwd, [...temperCommand(), 'init', ...words()]);
  await until('the answers are stored', async () => storedIn(folder) >= answers);
  child.kill('SIGKILL');
  await ended;
}

const filesOf = (project: TaskProject) => Promise.all(FILES.map((name) => project.read(name)));

test('killed in each part and called again, it makes the files of an undisturbed command, each answer asked for once', async () => {
  const [killed, undisturbed] = [await taskProject({ hasPackage: true }), await taskProject()];
  for (const answers of KILLS) await killAfter(answers, killed);
  writer.onCall = () => true;
  expect(await killed.init(...words())).toMatchObject({ exitCode: 0 });
  expect(writer.answered).toHaveLength(SCENARIOS + AGENT + RUBRIC);
  expect(new Set(writer.bodies).size).toBe(writer.bodies.length);
  expect(await undisturbed.init(...words())).toMatchObject({ exitCode: 0 });
  expect(writer.answered).toHaveLength(2 * (SCENARIOS + AGENT + RUBRIC));
  expect(await filesOf(killed)).toEqual(await filesOf(undisturbed));
});
