/** The official servers, over stdio and HTTP: in a tool loop, as resources, and in the forms of other SDKs. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';

import { endIdleServers } from '../../play/mcp/servers.ts';
import { defineAgent, toolLoop } from '../../sdk/index.ts';
import { mcp } from '../../sdk/mcp/mcp.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import { until } from '../until.ts';
import { freePort } from '../free-port.ts';
import { callerOf } from './hostile.ts';
import { temporaryFolder } from '../temporary-folder.ts';

afterAll(() => endIdleServers());

const require = createRequire(import.meta.url);
const programOf = (manifest: string) => join(dirname(manifest), 'dist', 'index.js');
const EVERYTHING = programOf(require.resolve('@modelcontextprotocol/server-everything/package.json'));
const FILES = programOf(require.resolve('@modelcontextprotocol/server-filesystem/package.json'));

test('server-filesystem: the model reads and writes files by a tool loop', async () => {
  const folder = realpathSync(temporaryFolder());
  mkdirSync(join(folder, 'notes'));
  writeFileSync(join(folder, 'notes', 'budget.txt'), 'The budget is 4,000.');
  const only = ['read_text_file', 'write_file'];
  const files = mcp({ command: process.execPath, args: [FILES, folder], only });
  const agent = defineAgent({
    name: 'files',
    scenarios: [{ id: 'budget' }],
    mcp: [files],
    async rollout(context) {
      const messages = [{ role: 'user' as const, content: 'How large is the budget?' }];
      const { answer, calls } = await toolLoop(context, { messages, tools: await files.tools(context) });
      context.log(calls.map(({ content, failed }) => [content, failed]));
      return answer === '4,000' ? 1 : 0;
    },
  });
  const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });
  const { reward, error, calls, logs } = await playAgent(agent, {
    scenario: { id: 'budget' },
    answers: [
      call('read_text_file', { path: join(folder, 'notes/budget.txt') }),
      call('write_file', { path: join(folder, 'notes/answer.txt'), content: '4,000' }),
      call('read_text_file', { path: '/etc/passwd' }),
      '4,000',
    ],
  });
  expect(error).toBeUndefined();
  expect(reward).toBe(1);
  expect(logs.join('\n')).toContain('The budget is 4,000.');
  expect(logs.join('\n')).toContain('Access denied');
  expect(readFileSync(join(folder, 'notes/answer.txt'), 'utf8')).toBe('4,000');
  const tools = calls[0]!.request.tools as { function: { name: string } }[];
  expect(tools.map((each) => each.function.name)).toEqual(only);
});

async function startEverything(): Promise<string> {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port) };
  const server = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void server.kill('SIGKILL'));
  let said = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (chunk) => (said += String(chunk)));
  await until('it listens', () => said.includes('listening'), 100_000, 50);
  return `http://127.0.0.1:${port}/mcp`;
}

test.each(['stdio', 'HTTP'])('server-everything over %s: tools and resources', async (transport) => {
  const place =
    transport === 'HTTP' ? { url: await startEverything() } : { command: process.execPath, args: [EVERYTHING] };
  const everything = mcp({ ...place, resources: true, isolate: true });
  const agent = defineAgent({
    name: 'everything',
    scenarios: [],
    async rollout(context) {
      const call = callerOf(await everything.tools(context));
      context.log(await call('get-sum', { a: 2, b: 3 }));
      context.log(await call('echo', { massage: 'a' }));
      context.log(await call('get-tiny-image'));
      context.log(await call('read_resource', { uri: 'demo://resource/static/document/features.md' }));
      return 1;
    },
  });
  const { logs, error } = await playAgent(agent, { scenario: { id: 'one' }, answers: [] });
  expect(error).toBeUndefined();
  const said = logs.join('\n');
  expect(said).toContain('The sum of 2 and 3 is 5.');
  expect(said).toMatch(/Error: .*Invalid arguments for tool echo/);
  expect(said).toMatch(/\[image image\/png, \d+ characters of base64\]/);
  expect(said).toContain('Everything Server');
});
