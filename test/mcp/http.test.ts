/** MCP servers that are reached by HTTP: redirects, keys, sessions, and answers that never come. */
import { afterAll, expect, test, vi } from 'vitest';

import { endIdleServers } from '../../play/mcp/servers.ts';
import { CHECK_SERVER } from '../../play/mcp/tool-server.ts';
import { mcp } from '../../sdk/mcp/mcp.ts';
import { markOf, memoryJournal } from '../play/play.ts';
import { playWith } from './hostile.ts';
import { answer, startHttpServer } from './http-server.ts';

afterAll(() => endIdleServers());

const lookOf = async (playing: ReturnType<typeof playWith>) => {
  const { failure, logs } = await playing;
  return failure?.message ?? logs.join('\n');
};

test('calls go out as POST with headers and key, and no stream is kept open beside them', async () => {
  vi.stubEnv('MCP_KEY', 'key-of-the-test');
  const headers: unknown[] = [];
  const { url, asked } = await startHttpServer(({ headers: given }, _response, message) => {
    headers.push([given.authorization, given['x-team']]);
    return message.method === 'tools/call'
      ? { content: [{ type: 'text', text: 'the key is key-of-the-test' }] }
      : answer(message);
  });
  const server = mcp({ url, headers: { 'x-team': 'red' }, keyVariable: 'MCP_KEY' });
  expect(await lookOf(playWith(server, (call) => call('look')))).toBe('the key is <MCP_KEY>');
  vi.unstubAllEnvs();
  expect(new Set(headers.map(String))).toEqual(new Set(['Bearer key-of-the-test,red']));
  expect(asked.every((line) => line.startsWith('POST /mcp'))).toBe(true);
});

test.each([301, 302, 303])('a redirect %s, which would make a GET of a POST, is not followed', async (status) => {
  const { url, asked } = await startHttpServer((_request, response) => {
    response.writeHead(status, { location: '/mcp/' }).end();
    return null;
  });
  const mark = await markOf(mcp({ url })[CHECK_SERVER](''));
  expect(mark.type).toBe('BadConfig');
  expect(mark.message).toMatch(
    /^the MCP server http:.*\/mcp redirects \(.*Redirect to http:.*\/mcp\/ not followed.*\)/,
  );
  expect(asked).toEqual(['POST /mcp initialize']);
});

test('a redirect 308 to the same host keeps method and body', async () => {
  const { url, asked } = await startHttpServer(({ url: path }, response, message) => {
    if (path === '/mcp/') return answer(message);
    response.writeHead(308, { location: '/mcp/' }).end();
    return null;
  });
  expect(await lookOf(playWith(mcp({ url }), (call) => call('look')))).toBe('seen');
  expect(asked.filter((line) => line.endsWith('tools/call'))).toEqual([
    'POST /mcp tools/call',
    'POST /mcp/ tools/call',
  ]);
});

test.each([
  [401, 'refuses the request (401); check headers and keyVariable of mcp'],
  [404, 'is not there (404); correct mcp({ url })'],
])('a server that answers %s is the user’s to mend', async (status, message) => {
  const { url } = await startHttpServer((_request, response) => {
    response.writeHead(status).end('no');
    return null;
  });
  const mark = await markOf(mcp({ url })[CHECK_SERVER](''));
  expect(mark).toMatchObject({ type: 'BadConfig', message: expect.stringContaining(message) });
});

test.each([
  ['breaks off', 'the server cannot be reached'],
  ['ends its stream', 'the server closed the connection without an answer'],
  ['answers 503', 'the server answered with 503'],
])('a server that %s in a call is an outage, and the call is not made again', async (how, message) => {
  let calls = 0;
  const { url } = await startHttpServer((request, response, asked) => {
    if (asked.method !== 'tools/call') return answer(asked);
    calls += 1;
    if (how === 'breaks off') request.socket.destroy();
    else if (how === 'answers 503') response.writeHead(503).end();
    else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n');
    return null;
  });
  const journal = memoryJournal();
  const play = () => playWith(mcp({ url }), (call) => call('look'), { journal });
  expect(await markOf(play())).toMatchObject({ type: 'ProgramFailed', message: expect.stringContaining(message) });
  expect(await lookOf(play())).toMatch(/^Error: the attempt was interrupted during this call/);
  expect(calls).toBe(1);
});

test('a server that has forgotten the session gets a new one, and the call', async () => {
  let sessions = 0;
  const { url } = await startHttpServer((_request, response, message) => {
    if (message.method === 'initialize') sessions += 1;
    if (message.method !== 'tools/call' || sessions > 1) return answer(message);
    response.writeHead(404).end();
    return null;
  });
  expect(await lookOf(playWith(mcp({ url }), (call) => call('look')))).toBe('seen');
  expect(sessions).toBe(2);
});

test('an answer without end is cut off', async () => {
  const { url } = await startHttpServer((_request, response, message) => {
    if (message.method !== 'tools/call') return answer(message);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const flood = (): void => {
      while (response.writable && response.write(`: ${'x'.repeat(65_536)}\n`));
      response.once('drain', flood);
    };
    flood();
    return null;
  });
  const mark = await markOf(playWith(mcp({ url }), (call) => call('look')));
  expect(mark.message).toContain('the server closed the connection without an answer');
});
