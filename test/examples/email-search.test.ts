/** Email search: the agent played, and its install lines on other SDKs. test/installation plays those, where the SDKs are. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import agent from '../../examples/email-search/agent.ts';
import { Inbox } from '../../examples/email-search/inbox.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';
import { blocksOf, readPage, ROOT } from '../docs/markdown.ts';

const PAGE = 'examples/email-search/README.md';

const call = (name: string, args: object) => ({ name, arguments: args });
const calls = (...toolCalls: ReturnType<typeof call>[]) => ({ toolCalls });
/** What the tools said since the model's last turn. */
const told = ({ messages }: CallRequest) =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1).map(({ content }) => String(content));

interface Exchange {
  readonly tools: unknown;
  readonly question: string;
  readonly heard: readonly string[];
  readonly lost: readonly string[];
  readonly answer: string;
}

const scenario = { id: 'mailbox-7', seed: 7 };
const WORD = new Inbox(scenario).question.slice(8, 11);
const search = calls(call('search', { query: WORD }));
const readHit = (place: number) => (request: CallRequest) =>
  calls(call('read', { id: (JSON.parse(told(request)[0]!) as number[])[place] }));

test('the agent has what the warm start of pocket-tools has, byte for byte', async () => {
  // gpu-worker/tests/pocket_build/test_tool_dialogues.py holds the warm start to the same file.
  const file = readFileSync(join(import.meta.dirname, 'email-search-tools.json'), 'utf8');
  const { tools, question, heard, lost, answer } = JSON.parse(file) as Exchange;
  const played = await playAgent(agent, { scenario, answers: [search, readHit(0), answer] });
  expect(played.metrics).toMatchObject({ correct: true, sourced: true, found: true, read: true, turns: 3 });
  expect(played.reward).toBeCloseTo(1.34);
  expect(JSON.stringify(played.calls[0]!.request.tools)).toBe(JSON.stringify(tools));
  const said = played.calls[2]!.request.messages.filter(({ role }) => role !== 'assistant');
  expect(said.map(({ content }) => content)).toEqual([question, ...heard]);
  const lostOn = [calls(call('search', { query: 'BAR' })), calls(call('read', { id: 12 })), 'BAR'];
  const astray = await playAgent(agent, { scenario, answers: lostOn });
  expect([1, 2].flatMap((turn) => told(astray.calls[turn]!.request))).toEqual(lost);
  expect(astray.reward).toBe(0);
});

test('an older mail gives a wrong answer', async () => {
  const answers = [search, readHit(1), (request: CallRequest) => told(request)[0]!.slice(7, 10)];
  const { reward, metrics } = await playAgent(agent, { scenario, answers });
  expect(metrics).toMatchObject({ correct: false, found: true, read: false, answered: true });
  expect(reward).toBeCloseTo(0.1);
});

test('a query is words and no operators; who never answers is stopped', async () => {
  const odd = calls(call('search', { query: '*' }));
  const endless = await playAgent(agent, { scenario, answers: () => odd });
  expect(told(endless.calls[1]!.request)[0]).toContain('query must have a word');
  expect(endless).toMatchObject({ reward: 0, metrics: { answered: false, turns: 5 } });
});

test('the page installs what the agents on other SDKs import, in the major versions that are tried', () => {
  const { dependencies: tried } = JSON.parse(
    readFileSync(join(ROOT, 'test/installation/project/package.json'), 'utf8'),
  ) as { dependencies: Readonly<Record<string, string>> };
  const folder = join(ROOT, 'examples/email-search/sdks');
  const packagesOf = (file: string) => {
    const source = readFileSync(join(folder, file), 'utf8');
    const imported = [...source.matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name = '']) => name);
    const others = [...new Set(imported)].filter((name) => name !== 'temper-rl');
    return others.map((name) => `${name}@${/^\d+/.exec(tried[name] ?? '')?.[0]}`).toSorted();
  };
  const rows = [...readPage(PAGE).matchAll(/^\| `(\S+\.ts)` \|.*\| `(.*)` \|$/gm)];
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  expect(rows.map(([, file]) => file!).toSorted()).toEqual(files.toSorted());
  for (const [, file, packages] of rows) expect(packages!.split(' ').toSorted(), file).toEqual(packagesOf(file!));
  const lines = blocksOf(PAGE).flatMap(({ code }) => code.replaceAll(/\\\n\s*/g, '').split('\n'));
  const [line = ''] = lines.filter((each) => each.startsWith('npm install '));
  const [, installed = ''] = /^npm install --no-save --prefix examples\/email-search\/sdks (.*)$/.exec(line) ?? [];
  expect(installed.split(' ').toSorted()).toEqual(files.flatMap(packagesOf).toSorted());
});
