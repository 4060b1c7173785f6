/** The programs of docs/programs.md: `agent.py` and `agent.sh` stand in the project's folder, where they are started. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { command, defineAgent, type Agent, type Scenario } from 'temper-rl';
import { playAgent } from 'temper-rl/testing';

const folder = new URL('../pages/', import.meta.url);
const PORT = ':9000';

interface Told {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
  readonly scenario: { readonly number: number };
}

/** In the place of the server that the page's agent asks. */
const server: Server = createServer(async (request, response) => {
  const { baseURL, apiKey, model, scenario } = JSON.parse(await text(request)) as Told;
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const messages = [{ role: 'user', content: `${scenario.number}*${scenario.number}=` }];
  const body = JSON.stringify({ model, messages });
  const asked = await fetch(`${baseURL}/chat/completions`, { method: 'POST', headers, body });
  const { choices } = (await asked.json()) as { choices: { message: { content: string } }[] };
  response.end(choices[0]?.message.content === String(scenario.number ** 2) ? '1' : '0');
});
before(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
after(() => server.close());

async function load(file: string): Promise<Agent> {
  const code = readFileSync(new URL(file, folder), 'utf8');
  const here = new URL(`at-port-${file}`, folder);
  writeFileSync(here, code.replaceAll(PORT, `:${(server.address() as AddressInfo).port}`));
  return ((await import(here.href)) as { default: Agent }).default;
}

for (const file of readdirSync(folder).filter((name) => name.startsWith('docs-programs-'))) {
  test(`${file} runs as the page shows it`, async () => {
    const agent = await load(file);
    const [scenario] = agent.scenarios as Scenario[];
    const { reward, failure, calls } = await playAgent(agent, { scenario: scenario!, answers: ['4'] });
    assert.deepEqual([reward, failure], [1, null]);
    assert.deepEqual(calls[0]?.request.messages, [{ role: 'user', content: '2*2=' }]);
  });
}

test('agent.sh runs as the page shows it', async () => {
  const agent = defineAgent({ name: 'shell', scenarios: [], rollout: command(['sh', 'agent.sh']) });
  const { reward, failure } = await playAgent(agent, { scenario: { id: 'one' }, answers: ['56'] });
  assert.deepEqual([reward, failure], [1, null]);
});
