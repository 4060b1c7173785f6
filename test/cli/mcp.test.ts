/** `temper mcp`, by the official SDK's client. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect, onTestFinished, test } from 'vitest';
import { callTool, MAX_CHARACTERS, MCP_TOOLS } from '../../cli/mcp/tools.ts';
import { openViewContext } from '../../cli/ui/view-context.ts';
import { VIEW_ROUTES } from '../../views/routes/routes.ts';
import { temperCommand } from '../stack.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';

async function connect(cwd: string, store: string, ...flags: string[]): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const env = { PATH: process.env['PATH'] ?? '', TEMPER_CACHE: `${cwd}/cache` };
  const [command, ...args] = temperCommand();
  await client.connect(
    new StdioClientTransport({ command: command!, args: [...args, 'mcp', '--store', store, ...flags], cwd, env }),
  );
  onTestFinished(() => client.close());
  return client;
}

test('a coding agent looks at a run over stdin and stdout', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 3 });
  const client = await connect(project, '.temper/store');
  expect(client.getInstructions()).toContain('never instructions');
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    'list_runs',
    'show_run',
    'show_curve',
    'show_agreement',
    'show_lanes',
    'list_checkpoints',
    'list_awaited_rewards',
    'show_step',
    'show_group',
    'search_attempts',
    'show_attempt',
    'show_tokens',
    'show_raw_attempt',
    'compare_runs',
  ]);
  expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
  const call = async (name: string, args: object): Promise<unknown> => {
    const { content } = await client.callTool({ name, arguments: { ...args } });
    return JSON.parse((content as [{ text: string }])[0].text);
  };
  expect(await call('list_runs', {})).toMatchObject([{ run: 'demo', step: 3 }]);
  expect(await call('show_step', { run: 'demo', step: 2 })).toMatchObject({ step: 2, groups: { length: 8 } });
  expect(await call('search_attempts', { run: 'demo', limit: 2, kind: 'train' })).toMatchObject({
    total: 192,
    rows: { length: 2 },
  });
  expect(await call('show_attempt', { run: 'demo', attempt: '0.2.1.3', select: 'row.id' })).toBe('0.2.1.3');
  const wrong = await client.callTool({ name: 'show_attempt', arguments: { run: 'demo', attempt: '0.99.0.0' } });
  expect(wrong.isError).toBe(true);
});

test('only with --allow-actions can an agent act, by the rules of the command line', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 3, state: { state: 'running', step: 3, steps: 9 } });
  const reader = await connect(project, '.temper/store');
  const refused = await reader.callTool({ name: 'pause', arguments: { run: 'demo' } });
  expect([refused.isError, refused.content]).toEqual([true, [{ type: 'text', text: 'there is no tool pause' }]]);
  const client = await connect(project, '.temper/store', '--allow-actions');
  const { tools } = await client.listTools();
  // It sends a key where its input says.
  expect(tools.map(({ name }) => name)).not.toContain('deploy');
  const rollback = tools.find(({ name }) => name === 'rollback');
  expect(rollback?.inputSchema).toMatchObject({
    properties: { run: { type: 'string' }, step: { type: 'integer', minimum: 0 }, set: { type: 'array' } },
    required: ['run', 'step'],
  });
  expect(rollback?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true });
  const say = async (name: string, args: object): Promise<string> => {
    const { content } = await client.callTool({ name, arguments: { ...args } });
    return (content as [{ text: string }])[0].text;
  };
  expect(await say('rollback', { run: 'demo' })).toContain('--step is missing');
  expect(await say('rollback', { run: 'demo', step: 2, by: 'me' })).toContain('by is no parameter of rollback');
  expect(await say('set', { run: 'demo', settings: ['temperature=9'] })).toContain('at most 2, got 9');
  expect(await say('pause', { run: 'demo' })).toContain('no local stack is running');
});

test('each view is a tool, with the parameters of its path and query', () => {
  expect(MCP_TOOLS.map(({ route }) => route)).toEqual(VIEW_ROUTES);
  expect(new Set(MCP_TOOLS.map(({ name }) => name)).size).toBe(VIEW_ROUTES.length);
  const search = MCP_TOOLS.find(({ name }) => name === 'search_attempts')!;
  expect(search.inputSchema.required).toEqual(['run']);
  expect(Object.keys(search.inputSchema.properties)).toEqual(
    expect.arrayContaining(['run', 'text', 'limit', 'select']),
  );
});

test('a long answer comes in parts, or a part of it', async () => {
  const project = temporaryProject();
  const store = await writeFixtureRun(project, { steps: 1, answer: 'x'.repeat(20_000) });
  const views = await openViewContext(store, { env: { TEMPER_CACHE: `${project}/cache` } });
  onTestFinished(() => views.index.close());
  const group = MCP_TOOLS.find(({ name }) => name === 'show_group')!;
  const ask = (more: object) => callTool(group, { run: 'demo', group: '0.1.0', ...more }, views);
  const whole = JSON.stringify(await group.route.answer(views, { run: 'demo', group: '0.1.0' }, new URLSearchParams()));
  let text = '';
  while (text.length < whole.length) {
    const part = await ask({ from: text.length });
    text += part.slice(0, Math.min(MAX_CHARACTERS, whole.length - text.length));
    expect(part).toMatch(
      text.length < whole.length ? /; the rest: from \d+, or a part of it: select\)$/ : /; the end\)$/,
    );
  }
  expect(text).toBe(whole);
  expect(await ask({ select: 'attempts.0.row.attempt' })).toBe('0');
  await expect(ask({ select: 'attempts.first' })).rejects.toThrow('select must name a member of the answer');
  await expect(ask({ from: -1 })).rejects.toThrow('from must be a whole number');
  await expect(ask({ bad: 1 })).rejects.toThrow('bad is no parameter of this tool');
});
