/** Mistakes in an agent's MCP servers: one line, exit code 2, before anything is played or trained. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { freePort } from '../free-port.ts';
import { sdkImports, write } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn } from './run-cli.ts';

const MCP = new URL('../../sdk/mcp/mcp.ts', import.meta.url).href;
const PROGRAM = fileURLToPath(new URL('../mcp/hostile-server.mjs', import.meta.url));
const hostile = (mode: string) => `mcp({ command: 'node', args: ['${PROGRAM}', '${mode}'] })`;

async function complaint(servers: string, command: readonly string[]): Promise<string> {
  const project = await temporaryProject();
  await write(
    join(project, 'agent.ts'),
    `${sdkImports('defineAgent')}
import { mcp } from '${MCP}';
export default defineAgent({ name: 'a', scenarios: [{ id: 'a' }, { id: 'b' }], mcp: ${servers}, rollout: () => 0 });
`,
  );
  const [name = '', ...flags] = command;
  const line = await complaintIn(project, [name, 'agent.ts', ...flags]);
  return line.replaceAll(PROGRAM, 'SERVER').replaceAll(process.execPath, 'node');
}

test.each([['train', '--base-model', 'pocket'], ['try']])(
  'temper %s: a program that is not there',
  async (...command) => {
    expect(await complaint("[mcp({ command: 'no-such-server' })]", command)).toBe(
      'temper: the MCP server no-such-server cannot be started (ENOENT); install no-such-server, or correct mcp({ command })',
    );
  },
);

const train = ['train', '--base-model', 'pocket'];

test('no URL', async () => {
  expect(await complaint("[mcp({ url: 'localhost:3001/mcp' })]", train)).toMatch(
    /^temper: .*url of mcp must be an http\(s\) URL without a password, got "localhost:3001\/mcp"; pass 'http:\/\/127.0.0.1:3001\/mcp'$/,
  );
});

test('nobody listens there', async () => {
  const url = `http://127.0.0.1:${await freePort()}/mcp`;
  expect(await complaint(`[mcp({ url: '${url}?key=secret' })]`, train)).toBe(
    `temper: the MCP server ${url} did not answer: the server cannot be reached (ECONNREFUSED); run it by hand, and correct mcp({ … })`,
  );
});

test('two tools of one name, in one server and in two', async () => {
  expect(await complaint(`[${hostile('twice')}]`, train)).toBe(
    'temper: the MCP server node SERVER twice has two tools of the name die; take one of them by only: […] of mcp',
  );
  expect(await complaint(`[${hostile('plain')}, ${hostile('noise')}]`, train)).toBe(
    "temper: two MCP servers of the agent a have a tool die; give one a prefix: mcp({ prefix: 'files_', … })",
  );
});

test('servers that are none', async () => {
  expect(await complaint("[{ command: 'npx' }]", train)).toMatch(
    /mcp of the agent a must be a list of servers, got \[\{"command":"npx"\}\]; pass \[mcp\(\{ … \}\)\]$/,
  );
});
