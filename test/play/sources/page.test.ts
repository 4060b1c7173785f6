/** The agents of docs/scenarios.md read what their page says. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

import { blocksOf, isTypeScript, ROOT } from '../../docs/markdown.ts';
import { parquetFile, sqliteFile } from './files.ts';
import { startRowsService } from './rows-service.ts';

const LOADER = pathToFileURL(join(ROOT, 'workers/typescript.js')).href;
const blocks = blocksOf('docs/scenarios.md');

/** A project with the page's files, below this one, whose packages its agents import. */
function writeProject(): string {
  mkdirSync(join(ROOT, '.temper'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.temper', 'scenarios-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const { info, code } of blocks) if (info.startsWith('csv ')) writeFileSync(join(folder, info.slice(4)), code);
  const generated = blocks.find(({ info }) => info === 'json')!.code;
  for (const name of ['scenarios', 'scenarios.held-out']) writeFileSync(join(folder, `${name}.jsonl`), generated);
  mkdirSync(join(folder, 'data'));
  for (const name of ['train', 'test']) {
    const columns = ['id', 'question'].map((column) => ({ name: column, data: [`${name}-${column}`] }));
    renameSync(parquetFile(columns), join(folder, 'data', `${name}.parquet`));
  }
  const table = 'create table tasks (id text, question text, difficulty integer)';
  renameSync(
    sqliteFile(`${table}; insert into tasks values ('a', 'easy', 1), ('b', 'hard', 5)`),
    join(folder, 'shop.db'),
  );
  return folder;
}

test('each agent of the page has its scenarios', async () => {
  const folder = writeProject();
  const rows = [{ question: 'How many?', answer: 'Two and two.\n#### 4' }];
  const service = await startRowsService({
    dataset: 'openai/gsm8k',
    splits: [{ config: 'main', split: 'train', rows }],
  });
  const agents = blocks.filter(isTypeScript);
  for (const [index, { code }] of agents.entries()) writeFileSync(join(folder, `agent-${index}.ts`), code);
  const scenarios = new URL('../../../play/scenarios.ts', import.meta.url).href;
  const script = `
    const { locateScenarios, readScenarios } = await import('${scenarios}');
    const read = {};
    for (const file of ${JSON.stringify(agents.map((_, index) => join(folder, `agent-${index}.ts`)))}) {
      const agent = locateScenarios((await import(file)).default, file);
      read[agent.name] = [];
      for (const source of [agent.scenarios, agent.evalScenarios ?? []])
        read[agent.name].push(...(await readScenarios(source, 10)));
    }
    console.log(JSON.stringify(read));`;
  const args = ['--import', LOADER, '--input-type=module', '--eval', script];
  const env = { ...process.env, ...service.env(join(folder, 'cache')) };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
  expect(JSON.parse(stdout)).toEqual({
    'from-csv': [
      { id: 'question-0', prompt: '2+3=', answer: 5 },
      { id: 'question-1', prompt: '4+4=', answer: 8 },
      { id: 'question-2', prompt: '7+2=', answer: 9 },
    ],
    'from-parquet': ['train', 'test'].map((name) => ({ id: `${name}-id`, question: `${name}-question` })),
    'from-sqlite': [{ id: 'a', question: 'easy', difficulty: 1 }],
    generated: Array.from({ length: 2 }, () => ({
      id: 'f1dcf930b8c4',
      task: 'Find the newest file in the folder and summarize it.',
      difficulty: 2,
    })),
    'from-hub': [{ id: 'gsm8k-0', question: 'How many?', answer: '4' }],
  });
});
