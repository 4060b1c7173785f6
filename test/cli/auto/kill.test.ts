/** `temper auto` in processes that are killed in each stage before the run: the same files, and no answer is asked for twice. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { startCommand, temperCommand } from '../../stack.ts';
import { until } from '../../until.ts';
import { autoProject, TASK, type AutoProject } from './auto-project.ts';
import { startWriter } from './scripted-writer.ts';

const FILES = ['scenarios.jsonl', 'scenarios.held-out.jsonl', 'agent.ts', 'rubric-check.json', 'temporal.config.ts'];
const COUNT = 4;
/** Proposals, tries with their verdicts; the agent; three samples with their verdicts. */
const [SCENARIOS, AGENT, RUBRIC] = [1 + 2 * COUNT, 1, 3 + 3];
/** Answers after which the command is killed: in each stage, and between two of them. */
const KILLS = [SCENARIOS - 3, SCENARIOS, SCENARIOS + AGENT + RUBRIC - 1];

const writer = await startWriter();
afterAll(() => writer.close());

const words = () => [TASK, '--model', `${writer.url}#writer`, '--count', String(COUNT), '--until', 'rubric'];

/** Answers in the folder's store: one that the writer has sent may not have arrived. */
function storedIn(folder: string): number {
  const generated = join(folder, '.temper', 'store', 'generated');
  const works = existsSync(generated) ? readdirSync(generated) : [];
  const folders = works.map((work) => join(generated, work, 'answers')).filter((answers) => existsSync(answers));
  return folders.flatMap((answers) => readdirSync(answers)).filter((name) => /^\w+\.json$/.test(name)).length;
}

async function killAfter(answers: number, { cwd, folder }: AutoProject): Promise<void> {
  writer.onCall = () => writer.answered.length < answers;
  const { child, ended } = startCommand(cwd, [...temperCommand(), 'auto', ...words()]);
  await until('the answers are stored', async () => storedIn(folder) >= answers);
  child.kill('SIGKILL');
  await ended;
}

const filesOf = (project: AutoProject) => Promise.all(FILES.map((name) => project.read(name)));

test('killed in each stage and called again, it makes the files of an undisturbed command, each answer asked for once', async () => {
  const [killed, undisturbed] = [await autoProject({ hasPackage: true }), await autoProject()];
  for (const answers of KILLS) await killAfter(answers, killed);
  writer.onCall = () => true;
  expect(await killed.auto(...words())).toMatchObject({ exitCode: 0 });
  expect(writer.answered).toHaveLength(SCENARIOS + AGENT + RUBRIC);
  expect(new Set(writer.bodies).size).toBe(writer.bodies.length);
  expect(await undisturbed.auto(...words())).toMatchObject({ exitCode: 0 });
  expect(writer.answered).toHaveLength(2 * (SCENARIOS + AGENT + RUBRIC));
  expect(await filesOf(killed)).toEqual(await filesOf(undisturbed));
});
