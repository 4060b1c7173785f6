/** `temper auto` up to the run: what it writes, what it keeps, what it asks again, and what it costs. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { afterAll, describe, expect, test } from 'vitest';
import type { ScriptedAuthor } from '../scenarios/scripted-author.ts';
import { autoProject, FOLDER, TASK, type AutoProject } from './auto-project.ts';
import { SHARPER, startWriter } from './scripted-writer.ts';

const PRICE = 'openai/writer=1/10';

const writer = await startWriter();
/** Its judge ranks the samples only under the sharper rubric. */
const picky = await startWriter({ ranksUnder: (rules) => rules.includes(SHARPER) });
/** Its judge never does. */
const hopeless = await startWriter({ ranksUnder: () => false });
afterAll(() => Promise.all([writer, picky, hopeless].map((server) => server.close())));

const keyFor = ({ url }: ScriptedAuthor) => ({ OPENAI_API_KEY: 'secret-key', OPENAI_BASE_URL: url });
const SMALL = ['--model', 'openai/writer', '--count', '4', '--held-out', '1'];

const UNTIL_RUBRIC = ['--until', 'rubric'];

async function make(server: ScriptedAuthor, ...words: string[]): Promise<AutoProject> {
  const project = await autoProject({ env: keyFor(server) });
  const { exitCode, stderr } = await project.auto(TASK, ...SMALL, '--attempts', '0', ...UNTIL_RUBRIC, ...words);
  expect(exitCode, stderr).toBe(0);
  return project;
}

const first = (await make(writer, '--price', PRICE)).folder;

/** A copy of what was made first. */
const made = () => autoProject({ env: keyFor(writer), made: first });

describe('a folder that was made up to the rubric', () => {
  test('has files that a person can read, an agent that names its judge, and no key', async () => {
    const project = await made();
    expect((await readdir(project.folder)).toSorted()).toEqual([
      '.temper',
      'agent.ts',
      'auto.json',
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
    const { exitCode, stdout } = await project.auto('--out', FOLDER, ...UNTIL_RUBRIC);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^scenarios: kept\nagent: kept\nrubric: kept\n/);
    expect(writer.answered).toHaveLength(before);
  });

  test('is used as a person edits it: later stages say so, and the rubric is checked again', async () => {
    const project = await made();
    await project.write('scenarios.jsonl', '{"id":"mine","task":"How much is 1 and 1?","difficulty":1}\n');
    await project.write('agent.ts', (await project.read('agent.ts')).replace('The right sum is better.', 'My rubric.'));
    const before = writer.answered.length;
    const { stdout } = await project.auto('--out', FOLDER, ...UNTIL_RUBRIC);
    expect(stdout).toContain('scenarios: kept, with your scenarios.jsonl\n');
    expect(stdout).toContain(
      'agent: kept, with your agent.ts; what it was made of has changed since: pass --redo agent to make it again\n',
    );
    expect(stdout).toContain('rubric: openai/writer ranks good above mediocre above bad for 1 scenarios');
    // One scenario: its samples, and their verdict.
    expect(writer.answered.slice(before)).toEqual(['samples', 'attempt']);
    expect(await project.readJson('rubric-check.json')).toMatchObject({
      rubric: 'My rubric.',
      samples: [{ scenario: 'mine' }],
    });
  });

  test('is made anew from a stage on, and asks again', async () => {
    const project = await made();
    const before = writer.answered.length;
    const { exitCode } = await project.auto('--out', FOLDER, '--until', 'agent', '--redo', 'agent');
    expect(exitCode).toBe(0);
    expect(writer.answered.slice(before)).toEqual(['agent']);
    const { exitCode: refused, stderr } = await project.auto(TASK, '--count', '9', '--until', 'agent');
    expect({ refused, stderr }).toEqual({
      refused: 2,
      stderr:
        'temper: --count must be 4 in this folder, whose scenarios are made, got 9; leave it out, pass --redo scenarios, or choose another folder with --out',
    });
  });

  test('loses no edited file to --redo', async () => {
    const project = await made();
    await project.write('agent.ts', 'mine');
    const { exitCode, stderr } = await project.auto(TASK, '--redo', 'scenarios', ...UNTIL_RUBRIC);
    expect(exitCode).toBe(2);
    expect(stderr.replaceAll(project.cwd, 'HERE')).toBe(
      'temper: --redo scenarios would write agent.ts again, but that file is not as temper auto wrote it; move HERE/add-two-numbers/agent.ts away, or leave --redo out',
    );
    expect(await project.read('agent.ts')).toBe('mine');
  });

  test('gets a file back that was deleted, without a hosted call', async () => {
    const project = await made();
    const agent = await project.read('agent.ts');
    await rm(`${project.folder}/agent.ts`);
    const before = writer.answered.length;
    expect((await project.auto('--out', FOLDER, ...UNTIL_RUBRIC)).exitCode).toBe(0);
    expect(await project.read('agent.ts')).toBe(agent);
    expect(writer.answered).toHaveLength(before);
  });
});

test('scenarios and an agent that are there before are used: nothing is asked but the samples and their verdicts', async () => {
  const from = await made();
  const project = await autoProject({ env: keyFor(writer) });
  await mkdir(project.folder);
  for (const name of ['scenarios.jsonl', 'scenarios.held-out.jsonl', 'agent.ts'])
    await project.write(name, await from.read(name));
  const before = writer.answered.length;
  const { exitCode, stdout } = await project.auto(TASK, ...SMALL, ...UNTIL_RUBRIC);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(
    'scenarios: kept, with your scenarios.jsonl and scenarios.held-out.jsonl\nagent: kept, with your agent.ts\n',
  );
  expect(new Set(writer.answered.slice(before))).toEqual(new Set(['samples', 'attempt']));
  expect(await project.read('agent.ts')).toBe(await from.read('agent.ts'));
});

describe('a rubric under which the judge is wrong', () => {
  test('is sharpened, and the sharper one is in the agent’s file', async () => {
    const project = await make(picky);
    expect(await project.read('agent.ts')).toContain(`const RUBRIC = \`${SHARPER}\`;`);
    expect(await project.readJson('rubric-check.json')).toMatchObject({ rubric: SHARPER });
    const { stdout } = await project.auto('--out', FOLDER, ...UNTIL_RUBRIC);
    expect(stdout).toMatch(/^scenarios: kept\nagent: kept\nrubric: kept\n/);
  });

  test('stops the command after a few, with what was wrong and how to go on', async () => {
    const project = await autoProject({ env: keyFor(hopeless) });
    const { exitCode, stderr } = await project.auto(TASK, ...SMALL, '--attempts', '0', ...UNTIL_RUBRIC);
    expect(exitCode).toBe(2);
    expect(stderr.split('\n').at(-1)).toMatch(
      /^temper: the judge openai\/writer must score good above mediocre above bad, but for 3 of 3 scenarios it did not \(\w+: good 0\.100, mediocre 0\.500, bad 0\.900\); read rubric-check\.json, edit RUBRIC or the judge in agent\.ts, and run the command again$/,
    );
    const before = hopeless.answered.length;
    expect((await project.auto('--out', FOLDER, ...UNTIL_RUBRIC)).exitCode).toBe(2);
    expect(hopeless.answered).toHaveLength(before);
  });
});

test('a limit of cost stops before a call, and a higher one continues without paying again', async () => {
  const project = await autoProject({ env: keyFor(writer) });
  const words = [TASK, ...SMALL, ...UNTIL_RUBRIC, '--price', PRICE];
  const before = writer.answered.length;
  const { exitCode, stderr } = await project.auto(...words, '--max-cost-usd', '0.021');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('temper: --max-cost-usd 0.021 is used up: 11 answers');
  expect((await project.auto(...words, '--max-cost-usd', '1')).exitCode).toBe(0);
  // Proposals, four tries and their verdicts, the agent, three samples and their verdicts: no call twice.
  expect(writer.answered.length - before).toBe(1 + 4 + 4 + 1 + 3 + 3);
});
