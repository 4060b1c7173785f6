/** The agent's file of `temper init --task`: what a model wrote is data in it, and the file plays. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentFile, commentText, quoted, templateLiteral, type AgentFileParts } from '../../../cli/init/agent-file.ts';
import { loadAgent } from '../../../cli/planning/load-agent.ts';
import { playAgent } from '../../../sdk/testing/index.ts';

const HOSTILE = [
  '`;process.exit(9);`',
  '${process.exit(9)} \\${process.exit(9)} \\\\${process.exit(9)}',
  "'; process.exit(9); //",
  '*/ process.exit(9); /*',
  'line\u2028process.exit(9)\u2029\r\nnext\u0000\u001b[2J',
  'left \u202Eto right\u2069 and \u200Bhidden \u{E0041}tags',
  '\\',
  '\\`',
  '$',
  '\uD800 alone',
];

const evaluate = (literal: string) => runInNewContext(literal) as string;

test.each(HOSTILE)('%j is the same text as a literal, and no more than that', (text) => {
  const expected = text.toWellFormed();
  expect(evaluate(quoted(text))).toBe(expected);
  expect(evaluate(templateLiteral(text))).toBe(expected.replaceAll('\r\n', '\n'));
  for (const literal of [quoted(text), templateLiteral(text)])
    expect(literal.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/u);
  expect(quoted(text)).not.toContain('\n');
  expect(commentText(text)).not.toMatch(/\*\/|[\n\r\u2028\u2029]/);
});

const MANIFEST = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json');
const EVERYTHING = join(dirname(MANIFEST), 'dist', 'index.js');

const PARTS: AgentFileParts = {
  name: 'hostile',
  task: HOSTILE.join(' '),
  systemPrompt: HOSTILE.join('\n'),
  rubric: HOSTILE.toReversed().join('\n'),
  judge: { judge: { baseUrl: 'http://127.0.0.1:9/v1', model: 'judge', keyVariable: 'JUDGE_KEY' }, price: null },
  server: null,
};
const scenario = { id: 'one', task: 'How much is 1 and 2?', difficulty: 1 };

let folder: string;
beforeAll(async () => {
  // Below the checkout, where `temper-rl` means this package.
  folder = await mkdtemp(join(fileURLToPath(new URL('../../../', import.meta.url)), '.temper-task-'));
  await writeFile(join(folder, 'scenarios.jsonl'), JSON.stringify(scenario));
  await writeFile(join(folder, 'scenarios.held-out.jsonl'), JSON.stringify({ ...scenario, id: 'two' }));
});
afterAll(() => rm(folder, { recursive: true }));

async function load(parts: AgentFileParts, name: string) {
  await writeFile(join(folder, name), agentFile(parts));
  return (await loadAgent(name, folder)).agent;
}

test('an agent that answers once is told its prompt and the input; the judge has its rubric', async () => {
  const agent = await load(PARTS, 'once.ts');
  const { calls, failure, metrics } = await playAgent(agent, { scenario, answers: ['3'] });
  expect(failure).toBeNull();
  expect(calls[0]?.request.messages).toEqual([
    { role: 'system', content: PARTS.systemPrompt.toWellFormed().replaceAll('\r\n', '\n') },
    { role: 'user', content: scenario.task },
  ]);
  expect(metrics).toEqual({ characters: 1 });
  expect(agent.reward).toMatchObject({ rubric: PARTS.rubric.toWellFormed().replaceAll('\r\n', '\n') });
});

test('an agent with an MCP server has its tools, and ends by complete_task', async () => {
  const options = { command: process.execPath, args: [EVERYTHING], only: ['get-sum'] };
  const agent = await load({ ...PARTS, server: { options, isolate: false } }, 'tools.ts');
  const answers = [
    { toolCalls: [{ name: 'get-sum', arguments: { a: 1, b: 2 } }] },
    { toolCalls: [{ name: 'complete_task', arguments: { summary: 'The sum is 3.' } }] },
  ];
  const { calls, metrics } = await playAgent(agent, { scenario, answers });
  expect(calls[1]?.request.messages.at(-1)?.content).toContain('3');
  expect(metrics).toMatchObject({ completed: true, ranOutOfTurns: false, turns: 2 });
});
