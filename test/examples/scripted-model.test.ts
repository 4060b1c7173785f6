/** The scripted hosted model of two examples: over HTTP, in the forms in which Temper asks. */
import { afterAll, beforeAll, expect, test } from 'vitest';

import { SCRIPT as sums } from '../../examples/auto/script.ts';
import { startScriptedModel } from '../../examples/auto/scripted-model.ts';
import { SCRIPT as notes } from '../../examples/mcp/script.ts';
import type { ChatServer } from '../../examples/tic-tac-toe-ruler/chat-server.ts';
import { block, quoteMessages, quoteTools } from '../../store/records/judging/quote.ts';
import { ruler } from '../../sdk/index.ts';

const asked: string[] = [];
let auto: ChatServer;
let mcp: ChatServer;
beforeAll(async () => {
  [auto, mcp] = await Promise.all([startScriptedModel(sums, 0, (kind) => asked.push(kind)), startScriptedModel(notes)]);
});
afterAll(() => Promise.all([auto, mcp].map((server) => server.close())));

interface Answer {
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
}

async function ask({ url }: ChatServer, messages: readonly object[], form?: string): Promise<Answer> {
  const response_format = form === undefined ? {} : { response_format: { json_schema: { name: form } } };
  const body = JSON.stringify({ model: 'scripted', messages, ...response_format });
  const response = await fetch(`${url}/chat/completions`, { method: 'POST', body });
  const { choices, error } = (await response.json()) as { choices?: { message: Answer }[]; error?: unknown };
  if (choices === undefined) throw new Error(JSON.stringify(error));
  return choices[0]!.message;
}

const blocks = (named: Readonly<Record<string, readonly unknown[]>>) => {
  const lines = Object.entries(named).flatMap(([name, values]) => block(name, 'mark', quoteTools(values, 10_000)));
  return [{ role: 'user', content: lines.join('\n') }];
};

async function askForm(server: ChatServer, form: string, named: Readonly<Record<string, readonly unknown[]>>) {
  const { content } = await ask(server, blocks(named), form);
  return JSON.parse(content!) as Record<string, unknown>;
}

test('scenarios are made up in order, and none twice', async () => {
  const first = await askForm(auto, 'scenarios', { task: ['Add.'], request: [{ count: 2 }] });
  expect(first).toEqual({
    scenarios: [
      { task: '2+2=', difficulty: 1 },
      { task: '2+3=', difficulty: 1 },
    ],
  });
  const existing = [{ task: '2+2=' }, { task: '2+4=', infeasible: true }];
  const { scenarios } = await askForm(auto, 'scenarios', { existing, request: [{ count: 2 }] });
  expect((scenarios as { task: string }[]).map(({ task }) => task)).toEqual(['2+3=', '2+5=']);
});

test('an agent is set up, with samples that the judge ranks as it should', async () => {
  expect(await askForm(auto, 'agent', { task: ['Add.'] })).toMatchObject({ systemPrompt: 'Add.' });
  const samples = await askForm(auto, 'samples', { task: ['Add.'], input: ['9+8='] });
  const prefix = [
    { role: 'system' as const, content: 'Add.' },
    { role: 'user' as const, content: '9+8=' },
  ];
  const attempts = Object.entries({ ...samples, other: '18', part: '177' }).map(([id, content]) => ({
    id,
    messages: [...prefix, { role: 'assistant' as const, content }],
  }));
  const scores = await ruler(attempts, { judge: { baseUrl: auto.url, model: 'scripted' } });
  expect(Object.fromEntries(scores.map(({ id, score }) => [id, score]))).toEqual({
    good: 1,
    mediocre: 0.5,
    bad: 0,
    other: 0,
    part: 0,
  });
  expect(asked).toContain('scores');
});

test('it solves a task with the tools of a server, and sees whether another one did', async () => {
  const [{ task, calls, answer }] = notes.tasks as [(typeof notes.tasks)[0]];
  const messages: object[] = [{ role: 'user', content: task }];
  const made: unknown[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const { tool_calls: called } = await ask(mcp, messages);
    const { name, arguments: args } = called![0]!.function;
    made.push({ name, arguments: JSON.parse(args) as unknown });
    messages.push({ role: 'assistant', content: null, tool_calls: called }, { role: 'tool', content: 'heard' });
  }
  expect(made).toEqual([...calls, { name: 'complete_task', arguments: { summary: answer } }]);
  const verdict = async (conversation: object[]) => {
    const attempt = block('attempt', 'mark', quoteMessages(conversation as never, 10_000));
    const said = await ask(
      mcp,
      [...blocks({ task: [task] }), { role: 'user', content: attempt.join('\n') }],
      'verdict',
    );
    return JSON.parse(said.content!) as unknown;
  };
  expect(await verdict(messages)).toMatchObject({ solved: true });
  expect(await verdict(messages.slice(0, 3))).toMatchObject({ solved: false });
});

test('what the script does not know is refused', async () => {
  await expect(ask(auto, [{ role: 'user', content: 'What is 2+2?' }])).rejects.toThrow('the script has no task');
  await expect(ask(auto, blocks({}), 'poem')).rejects.toThrow('no answer of the form poem');
});
