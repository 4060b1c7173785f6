/** `temper init --task`: what it writes, what it keeps, what it asks again, and what it costs. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { afterAll, describe, expect, test } from 'vitest';
import type { ScriptedAuthor } from '../scenarios/scripted-author.ts';
import { taskProject, WORDS, type TaskProject } from './task-project.ts';
import { SHARPER, startWriter } from './scripted-writer.ts';

const PRICE = 'openai/writer=1/10';

const writer = await startWriter();
/** Its judge ranks the samples only under the sharper rubric. */
const picky = await startWriter({ ranksUnder: (rules) => rules.includes(SHARPER) });
/** Its judge never does. */
const hopeless = await startWriter({ ranksUnder: () => false });
afterAll(() => Promise.all([writer, picky, hopeless].map((server) => server.close())));

const keyFor = ({ url }: ScriptedAuthor) => ({ OPENAI_API_KEY: 'secret-key', OPENAI_BASE_URL: url });
const SMALL = [...WORDS, '--writer', 'openai/writer', '--count', '4', '--held-out', '1'];

async function make(server: ScriptedAuthor, ...words: string[]): Promise<TaskProject> {
  const project = await taskProject({ env: keyFor(server) });
  const { exitCode, stderr } = await project.init(...SMALL, '--attempts', '0', ...words);
  expect(exitCode, stderr).toBe(0);
  return project;
}

const first = (await make(writer, '--price', PRICE)).folder;

/** A copy of what was made first. */
const made = () => taskProject({ env: keyFor(writer), made: first });

describe('a folder that was made', () => {
  test('has files that a person can read, an agent that names its judge, and no key', async () => {
    const project = await made();
    expect((await readdir(project.folder)).toSorted()).toEqual([
      '.temper',
      'agent.ts',
      'rubric-check.json',
      'scenarios.held-out.jsonl',
      'scenarios.jsonl',
      'temporal.config.ts',
    ]);
    const agent = await project.read('agent.ts');
    expect(agent).toContain("name: 'add-two-numbers'");
    expect(agent).toContain('const SYSTEM_PROMPT = `Answer with the sum alone.`;');
    expect(agent).toContain(
      "reward: ruler({ judge: 'openai/writer', rubric: RUBRIC, usdPerMillionInput: 1, usdPerMillionOutput: 10 })",
    );
    const { samples } = await project.readJson<{ samples: { good: { score: number } }[] }>('rubric-check.json');
    expect(samples.map(({ good }) => good.score)).toEqual([0.9, 0.9, 0.9]);
    const files = await readdir(project.folder, { recursive: true, withFileTypes: true });
    for (const file of files.filter((each) => each.isFile()))
      expect(await project.read(`${file.parentPath.slice(project.folder.length)}/${file.name}`)).not.toContain(
        'secret-key',
      );
  });

  test('is kept when the command is run again, and no hosted call is made', async () => {
    const project = await made();
    const before = writer.answered.length;
    const { exitCode, stdout } = await project.init(...SMALL, '--attempts', '0');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^scenarios: kept\nagent: kept\nrubric: openai\/writer ranks good above mediocre above bad /,
    );
    expect(writer.answered).toHaveLength(before);
  });

  test('is used as a person edits it: later stages say so, and the rubric is checked again', async () => {
    const project = await made();
    await project.write('scenarios.jsonl', '{"id":"mine","task":"How much is 1 and 1?","difficulty":1}\n');
    await project.write('agent.ts', (await project.read('agent.ts')).replace('The right sum is better.', 'My rubric.'));
    const before = writer.answered.length;
    const { stdout } = await project.init(...SMALL, '--attempts', '0');
    expect(stdout).toContain('scenarios: kept\nagent: kept\n');
    expect(stdout).toContain('rubric: openai/writer ranks good above mediocre above bad for 1 scenarios');
    // One scenario: its samples, and their verdict.
    expect(writer.answered.slice(before)).toEqual(['samples', 'attempt']);
    expect(await project.readJson('rubric-check.json')).toMatchObject({
      rubric: 'My rubric.',
      samples: [{ scenario: 'mine' }],
    });
  });

  test('names the commands that come next', async () => {
    const { stdout } = await (await made()).init(...SMALL);
    expect(stdout).toMatch(
      /next:\n {2}cd add-two-numbers\n {2}npx temper train\n {2}npx temper eval --model pocket --model add-two-numbers --judge$/,
    );
  });

  test('gets a file back that was deleted, without a hosted call', async () => {
    const project = await made();
    const agent = await project.read('agent.ts');
    await rm(`${project.folder}/agent.ts`);
    const before = writer.answered.length;
    expect((await project.init(...SMALL, '--attempts', '0', '--price', PRICE)).exitCode).toBe(0);
    expect(await project.read('agent.ts')).toBe(agent);
    expect(writer.answered).toHaveLength(before);
  });
});

test('scenarios and an agent that are there before are used: nothing is asked but the samples and their verdicts', async () => {
  const from = await made();
  const project = await taskProject({ env: keyFor(writer) });
  await mkdir(project.folder);
  for (const name of ['scenarios.jsonl', 'scenarios.held-out.jsonl', 'agent.ts'])
    await project.write(name, await from.read(name));
  const before = writer.answered.length;
  const { exitCode, stdout } = await project.init(...SMALL);
  expect(exitCode).toBe(0);
  expect(stdout).toContain('scenarios: kept\nagent: kept\n');
  expect(new Set(writer.answered.slice(before))).toEqual(new Set(['samples', 'attempt']));
  expect(await project.read('agent.ts')).toBe(await from.read('agent.ts'));
});

describe('a rubric under which the judge is wrong', () => {
  test('is sharpened, and the sharper one is in the agent’s file', async () => {
    const project = await make(picky);
    expect(await project.read('agent.ts')).toContain(`const RUBRIC = \`${SHARPER}\`;`);
    expect(await project.readJson('rubric-check.json')).toMatchObject({ rubric: SHARPER });
    const { stdout } = await project.init(...SMALL, '--attempts', '0');
    expect(stdout).toMatch(
      /^scenarios: kept\nagent: kept\nrubric: openai\/writer ranks good above mediocre above bad /,
    );
  });

  test('stops the command after a few, with what was wrong and how to go on', async () => {
    const project = await taskProject({ env: keyFor(hopeless) });
    const { exitCode, stderr } = await project.init(...SMALL, '--attempts', '0');
    expect(exitCode).toBe(2);
    expect(stderr.split('\n').at(-1)).toMatch(
      /^temper: the judge openai\/writer must score good above mediocre above bad, but for 3 of 3 scenarios it did not \(\w+: good 0\.100, mediocre 0\.500, bad 0\.900\); read rubric-check\.json, edit RUBRIC or the judge in agent\.ts, and run the command again$/,
    );
    const before = hopeless.answered.length;
    expect((await project.init(...SMALL, '--attempts', '0')).exitCode).toBe(2);
    expect(hopeless.answered).toHaveLength(before);
  });
});

test('a limit of cost stops before a call, and a higher one continues without paying again', async () => {
  const project = await taskProject({ env: keyFor(writer) });
  const words = [...SMALL, '--price', PRICE];
  const before = writer.answered.length;
  const { exitCode, stderr } = await project.init(...words, '--max-cost-usd', '0.021');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('temper: --max-cost-usd 0.021 is used up: 11 answers');
  expect((await project.init(...words, '--max-cost-usd', '1')).exitCode).toBe(0);
  // Proposals, four tries and their verdicts, the agent, three samples and their verdicts: no call twice.
  expect(writer.answered.length - before).toBe(1 + 4 + 4 + 1 + 3 + 3);
});
