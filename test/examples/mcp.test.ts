/** The agents on server-filesystem: real tools of the server on real notes, and what an answer is worth. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

import { startScriptedModel } from './scripted/hosted-model.ts';
import agent from '../../examples/mcp/agent.ts';
import { notesOn, words, writeNotes } from '../../examples/mcp/notes.ts';
import { SCRIPT } from './scripted/notes.ts';
import small from '../../examples/mcp/small-mcp.ts';
import { endIdleServers } from '../../play/mcp/servers.ts';
import { playAgent, type PlayedAgent, type ScriptedAnswers } from '../../sdk/testing/index.ts';
import { codeFile } from '../compiled.ts';
import { blocksOf, ROOT } from '../docs/markdown.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const FOLDER = join(ROOT, 'examples/mcp');
const about = words[0]!;
const [newest, older] = notesOn(about) as [{ word: string; number: number }, { word: string; number: number }];
const scenario = { id: 'one', task: `What is ${about}?`, difficulty: 1 };
const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });

beforeAll(() => {
  // A worker starts a server in the folder of the agent's file.
  process.chdir(FOLDER);
  writeNotes('notes');
});
afterAll(() => endIdleServers());

/** Tools that the model was offered, and what it heard of them. */
const offered = ({ calls }: PlayedAgent) => calls[0]!.request.tools;
const heard = ({ calls }: PlayedAgent) =>
  calls.at(-1)!.request.messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []));

describe('the small edition', () => {
  const play = (answers: ScriptedAnswers) => playAgent(small, { scenario, answers });

  test('offers what pocket-tools knows, byte for byte, and is answered by the server', async () => {
    const { tools } = JSON.parse(readFileSync(join(import.meta.dirname, 'email-search-tools.json'), 'utf8')) as {
      tools: unknown;
    };
    const played = await play([
      call('search', { query: about }),
      call('read', { id: newest.number }),
      `${newest.word} ${newest.number}`,
    ]);
    expect(played).toMatchObject({ failure: null, reward: 1.3, metrics: { correct: true, sourced: true } });
    expect(JSON.stringify(offered(played))).toBe(JSON.stringify(tools));
    const numbers = notesOn(about).map(({ number }) => number);
    expect(heard(played)).toEqual([`[${numbers.join(', ')}]`, `${about} is ${newest.word}.`]);
  });

  test('an older note is wrong; what is not there, and what is outside of the notes, is told', async () => {
    const old = await play([call('search', { query: about }), call('read', { id: older.number }), older.word]);
    expect(old).toMatchObject({ reward: 0, metrics: { correct: false, newest: false, answered: true } });
    const astray = await play([call('search', { query: '..' }), call('read', { id: 99 }), newest.word]);
    expect(heard(astray)).toEqual(['[]', 'Error: no such id']);
    expect(astray).toMatchObject({ reward: 1, metrics: { correct: true, sourced: false, newest: false } });
  });
});

test('the full edition has the tools as the server describes them', async () => {
  const played = await playAgent(agent, {
    scenario,
    answers: [
      call('list_directory', { path: about }),
      call('read_multiple_files', { paths: notesOn(about).map(({ number }) => `${about}/${number}.txt`) }),
      newest.word,
    ],
  });
  expect(played).toMatchObject({ failure: null, reward: 1, metrics: { newest: true, sourced: false } });
  expect(heard(played)[0]).toContain(`[FILE] ${newest.number}.txt`);
  expect(heard(played)[1]).toContain(`${about} is ${older.word}.`);
  const names = (offered(played) as { function: { name: string } }[]).map((each) => each.function.name);
  expect(names.toSorted()).toEqual(['list_directory', 'read_multiple_files', 'read_text_file']);
});

test('the command of its page generates scenarios of the same tasks, all solved with the tools of the server', async () => {
  const model = await startScriptedModel(SCRIPT);
  const folder = temporaryFolder();
  onTestFinished(() => model.close());
  const blocks = blocksOf('examples/mcp/README.md').map(({ code }) => code.replaceAll(/\\\n\s*/g, ' '));
  const [line = ''] = blocks.flatMap((code) => /^npx (temper scenarios .*)$/m.exec(code)?.[1] ?? []);
  const out = join(folder, 'notes.jsonl');
  const few = `node ${line.replace('temper', codeFile('cli/temper.js'))} --model '${model.url}#scripted' --count 6 --held-out 2 --out '${out}'`;
  const env = { ...process.env, TEMPER_STORE: pathToFileURL(join(folder, 'store')).href };
  await promisify(execFile)('sh', ['-c', few], { cwd: ROOT, env });
  const tasks = ['notes.jsonl', 'notes.held-out.jsonl'].map((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/"task":"(.*?)"/g)].map(([, task]) => task),
  );
  expect(tasks.map(({ length }) => length)).toEqual([4, 2]);
  expect(new Set(tasks.flat())).toEqual(new Set(SCRIPT.tasks.slice(0, 6).map(({ task }) => task)));
});
