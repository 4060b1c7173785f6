/** The command of the page of `from-a-task`, and the files that its folder shows: a scripted model stands for the hosted one. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

import { SCRIPT } from './scripted/sums.ts';
import { startScriptedModel } from './scripted/hosted-model.ts';
import agent from '../../examples/from-a-task/sums/agent.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import { codeFile } from '../compiled.ts';
import { blocksOf, ROOT } from '../docs/markdown.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const FILES = ['agent.ts', 'temporal.config.ts', 'scenarios.jsonl', 'scenarios.held-out.jsonl', 'rubric-check.json'];
const SHOWN = join(ROOT, 'examples/from-a-task/sums');
const read = (folder: string, file: string) => readFileSync(join(folder, file), 'utf8');

test('the command of its page writes the files that the folder shows, and asks the hosted model nothing twice', async () => {
  const asked: string[] = [];
  const model = await startScriptedModel(SCRIPT, 0, (kind) => asked.push(kind));
  const folder = temporaryFolder();
  onTestFinished(() => model.close());
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(dirname(codeFile('package.json')), join(folder, 'node_modules/temper-rl'));
  const blocks = blocksOf('examples/from-a-task/README.md').map(({ code }) => code.replaceAll(/\\\n\s*/g, ' '));
  const [line = ''] = blocks.flatMap((code) => /^npx (temper init .*)$/m.exec(code)?.[1] ?? []);
  const command = line.replace('temper', codeFile('cli/temper.js'));
  const env = { ...process.env, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'none' };
  await promisify(execFile)('sh', ['-c', `node ${command}`], { cwd: folder, env });
  for (const file of FILES) {
    const written = read(join(folder, 'sums'), file);
    expect(written, file).toBe(read(SHOWN, file));
  }
  const counts = new Map<string, number>();
  for (const kind of asked) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const expected = { scenarios: 4, turn: 121, verdict: 121, agent: 1, samples: 3, scores: 3 };
  expect(Object.fromEntries(counts)).toEqual(expected);
});

test('the agent asks once, and leaves the reward to the judge', async () => {
  const scenario = { id: 'one', task: '7+8=', difficulty: 2 };
  const { calls, reward, metrics } = await playAgent(agent, { scenario, answers: ['15'] });
  expect(calls.map(({ request }) => request.messages.map(({ content }) => content))).toEqual([['Add.', '7+8=']]);
  expect({ reward, metrics }).toMatchObject({ reward: null, metrics: { characters: 2 } });
});
