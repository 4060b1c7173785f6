/** Data sets of Langfuse (its OpenAPI of August 2026) and of Weave (its service API) as scenarios. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';

import { readScenarios } from '../../../play/scenarios.ts';
import { langfuseSource } from '../../../play/sources/langfuse.ts';
import { weaveSource } from '../../../play/sources/weave.ts';
import { langfuse, weave } from '../../../sdk/index.ts';

interface Asked {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Record<string, unknown>;
}

/** `refusals` are answered first. */
async function startService(key: string, answer: (asked: Asked) => unknown, refusals: number[] = []) {
  const server = createServer((request, response) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const { pathname: path, searchParams: query } = new URL(request.url!, 'http://host');
      const text = Buffer.concat(parts).toString();
      const status = refusals.shift() ?? (request.headers.authorization === `Basic ${btoa(key)}` ? 200 : 401);
      const body = (text === '' ? {} : JSON.parse(text)) as Asked['body'];
      response.writeHead(status, { 'retry-after': '0' }).end(JSON.stringify(answer({ path, query, body })));
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const KEYS = { LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_SECRET_KEY: 'sk', WANDB_API_KEY: 'wk' };

const item = (number: number) => ({
  id: `i${number}`,
  status: number === 3 ? 'ARCHIVED' : 'ACTIVE',
  input: { question: `q${number}` },
  expectedOutput: null,
});

test('items of a data set of Langfuse are read to their last page, archived ones left out', async () => {
  const items = Array.from({ length: 150 }, (_, index) => item(index));
  const answer = ({ path, query }: Asked) => {
    expect([path, query.get('datasetName'), query.get('version')]).toEqual([
      '/api/public/dataset-items',
      'support',
      '2026-11-20T00:00:00Z',
    ]);
    const [page, limit] = [Number(query.get('page')), Number(query.get('limit'))];
    return { data: items.slice((page - 1) * limit, page * limit), meta: { totalPages: Math.ceil(150 / limit) } };
  };
  const env = { ...KEYS, LANGFUSE_BASE_URL: await startService('pk:sk', answer, [429, 503]) };
  const map = ({ id, input }: { id: string; input: unknown }) => ({ id, ...(input as { question: string }) });
  const read = await readScenarios(langfuseSource('support', { map, version: '2026-11-20T00:00:00Z' }, env), 1000);
  expect(read).toHaveLength(149);
  expect(read.slice(2, 4)).toEqual([
    { id: 'i2', question: 'q2' },
    { id: 'i4', question: 'q4' },
  ]);
});

test('rows of a data set of Weave are read by its table; one without an id has its digest', async () => {
  const rows = Array.from({ length: 201 }, (_, index) => ({ digest: `d${index}`, val: { question: `q${index}` } }));
  Object.assign(rows[1]!.val, { id: 'own' });
  const answer = ({ path, body }: Asked) => {
    expect(body['project_id']).toBe('team/shop');
    if (path === '/obj/read') {
      expect(body).toMatchObject({ object_id: 'support', digest: 'latest' });
      return { obj: { val: { _type: 'Dataset', rows: 'weave:///team/shop/table/T7' } } };
    }
    const { digest, limit, offset } = body as { digest: string; limit: number; offset: number };
    expect([path, digest]).toEqual(['/table/query', 'T7']);
    return { rows: rows.slice(offset, offset + limit) };
  };
  const env = { ...KEYS, WF_TRACE_SERVER_URL: await startService('api:wk', answer) };
  const read = await readScenarios(weaveSource('team/shop/support', {}, env), 1000);
  expect(read).toHaveLength(201);
  expect(read.slice(0, 2)).toEqual([
    { id: 'd0', question: 'q0' },
    { id: 'own', question: 'q1' },
  ]);
});

test('what is wrong is said in one line, without the key', async () => {
  const url = await startService('other:key', () => ({}));
  const [ofLangfuse, ofWeave] = [
    { ...KEYS, LANGFUSE_BASE_URL: url },
    { ...KEYS, WF_TRACE_SERVER_URL: url },
  ];
  const read = (source: Parameters<typeof readScenarios>[0]) => readScenarios(source, 10);
  await expect(read(langfuseSource('support', {}, ofLangfuse))).rejects.toThrow(
    'Langfuse must give the data set support, it answered 401; check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY',
  );
  await expect(read(weaveSource('team/shop/support', {}, ofWeave))).rejects.toThrow('401; check WANDB_API_KEY');
  await expect(read(langfuseSource('support', {}, {}))).rejects.toThrow('LANGFUSE_PUBLIC_KEY');
  const other = { ...KEYS, WF_TRACE_SERVER_URL: await startService('api:wk', () => ({ obj: { val: { rows: 'x' } } })) };
  await expect(read(weaveSource('team/shop/support', {}, other))).rejects.toThrow(
    'must be a Dataset with a table of rows',
  );
  expect(() => langfuse(' ')).toThrow('langfuse must be given the name of a data set');
  expect(() => weave('support')).toThrow('weave must be given ENTITY/PROJECT/NAME');
});
