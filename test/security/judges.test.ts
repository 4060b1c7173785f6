/** Questions to a judge, and the key they are asked with, go to its own address; nothing secret stands in an address. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Model } from '../../sdk/index.ts';
import { findHostedModel } from '../../play/connections/providers.ts';
import { askJudge, openJudge } from '../../play/judge/ask-judge.ts';
import { createRuler } from '../../sdk/ruler/create-ruler.ts';
import { OutageClock } from '../../play/connections/clock.ts';
import { writeAgent } from '../cli/agents.ts';
import { runCli } from '../cli/run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

interface Seen {
  headers: Record<string, unknown>;
}

/** Answers with a status, and remembers who asked. */
async function listen(status: number, location?: string): Promise<{ url: string; seen: Seen[]; server: Server }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    seen.push({ headers: request.headers });
    request.resume().on('end', () => {
      response.writeHead(status, { 'content-type': 'application/json', ...(location ? { location } : {}) });
      response.end(JSON.stringify({ choices: [{ message: { content: '{}' }, finish_reason: 'stop' }] }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen, server };
}

const servers: Server[] = [];
beforeEach(() => {
  vi.stubEnv('OPENAI_CUSTOM_HEADERS', 'X-Secret: s3cret\nAuthorization: Bearer other\nContent-Type: s3cret/text');
  vi.stubEnv('OPENAI_ORG_ID', 's3cret-organization');
  vi.stubEnv('OPENAI_PROJECT_ID', 's3cret-project');
  vi.stubEnv('OPENAI_ADMIN_KEY', 's3cret-admin');
});
afterEach(() => {
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) server.close();
});

async function start(status: number, location?: string) {
  const started = await listen(status, location);
  servers.push(started.server);
  return started;
}

function ask(baseUrl: string) {
  const ruler = createRuler({ judge: { baseUrl, model: 'm', keyVariable: 'JUDGE_KEY' } });
  const { judge } = openJudge(ruler, null, { JUDGE_KEY: 'judge-key' });
  return askJudge(judge, [{ role: 'user', content: 'who won?' }], {
    callTimeoutMs: 5000,
    callRetryBudgetMs: 0,
    signal: new AbortController().signal,
    checkFresh: () => undefined,
    outage: new OutageClock(),
  });
}

test('a judge gets its own key and none of the headers that the environment has for another provider', async () => {
  const judge = await start(200);
  await ask(judge.url);
  expect(judge.seen).toHaveLength(1);
  expect(judge.seen[0]!.headers).toMatchObject({
    authorization: 'Bearer judge-key',
    'content-type': 'application/json',
  });
  expect(JSON.stringify(judge.seen)).not.toContain('s3cret');
});

test.each([301, 302, 307, 308])(
  'a judge that answers %i is not followed, and the run is told what to do',
  async (status) => {
    const elsewhere = await start(200);
    const judge = await start(status, `${elsewhere.url}/chat/completions`);
    await expect(ask(judge.url)).rejects.toMatchObject({
      type: 'BadConfig',
      message: expect.stringMatching(
        new RegExp(`refused with ${status}.*set the address to the one that it redirects to`),
      ) as string,
    });
    expect([judge.seen.length, elsewhere.seen.length]).toEqual([1, 0]);
  },
);

test('a model of a script gets the headers of its own alone, and is not followed', async () => {
  const elsewhere = await start(200);
  const asked = await start(307, `${elsewhere.url}/chat/completions`);
  const model = new Model({ name: 'opponent', project: 'p', inferenceBaseUrl: asked.url, inferenceApiKey: 'own' });
  const messages = [{ role: 'user' as const, content: 'x' }];
  await expect(model.openai().chat.completions.create({ model: 'm', messages })).rejects.toThrow(/307/);
  expect(elsewhere.seen).toEqual([]);
  expect(asked.seen[0]!.headers).toMatchObject({ authorization: 'Bearer own', 'content-type': 'application/json' });
  expect(JSON.stringify(asked.seen)).not.toContain('s3cret');
});

test.each([
  ['https://api.openai.com/v1', 's3cret-organization', 's3cret-project'],
  ['https://eu.api.openai.com/v1', 's3cret-organization', 's3cret-project'],
  ['http://api.openai.com/v1', null, null],
  ['https://api.openai.com.other.test/v1', null, null],
])('at %s the organization and the project are %s and %s', (inferenceBaseUrl, organization, project) => {
  const client = new Model({ name: 'm', project: 'p', inferenceBaseUrl, inferenceApiKey: 'own' }).openai();
  expect(client).toMatchObject({ organization, project, apiKey: 'own', adminAPIKey: null });
});

const SECRET = 'pa55';
test.each([`http://user:${SECRET}@h/v1`, `http://${SECRET}@h/v1`, `https://h/v1?key=${SECRET}`])(
  'an address with a secret in it is refused, and not repeated: %s',
  async (url) => {
    const refused = expect.objectContaining({ type: 'BadConfig' }) as unknown;
    const complaints = [
      () => findHostedModel(`${url}#m`, {}),
      () => findHostedModel('openai/m', { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'k' }),
      () => createRuler({ judge: { baseUrl: url, model: 'm' } }),
      () => new Model({ name: 'm', project: 'p', inferenceBaseUrl: url }).openai(),
    ].map((refuse) => {
      try {
        refuse();
      } catch (error) {
        return error;
      }
      return null;
    });
    for (const error of complaints) {
      expect(error).toEqual(refused);
      expect(String(error)).not.toContain(SECRET);
    }
    const project = temporaryFolder();
    const agent = await writeAgent(project);
    const { exitCode, stderr } = await runCli(project, ['eval', agent, '--model', 'm', '--base-url', url]);
    expect(exitCode).toBe(2);
    expect(stderr).not.toContain(SECRET);
  },
);
