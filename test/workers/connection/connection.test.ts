import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { connectClient, patiently } from '../../../workers/connection/connection.ts';
import { configuredTarget } from '../../../workers/connection/target.ts';
import { openStack } from '../local-stack/stack-harness.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const noProfile = { TEMPORAL_CONFIG_FILE: `${tmpdir()}/there-is-none.toml` };

it('uses no server that nobody named', () => {
  expect(configuredTarget(noProfile)).toBeNull();
  expect(configuredTarget({ ...noProfile, TEMPORAL_ADDRESS: 'h:1', TEMPORAL_NAMESPACE: 'n' })).toEqual({
    address: 'h:1',
    namespace: 'n',
  });
});

const project = temporaryFolder();

// Both wait for all of their time, and may do so together.
it.concurrent('fails within fifteen seconds where a named server refuses, and starts nothing', async () => {
  const env = { ...process.env, ...noProfile, TEMPORAL_ADDRESS: '127.0.0.1:9' };
  const startedAt = Date.now();
  await expect(openStack(project, { env })).rejects.toMatchObject({
    type: 'BadConfig',
    message:
      'no Temporal server answers at 127.0.0.1:9 (TEMPORAL_ADDRESS or temporal.toml); start one with temporal server start-dev --port 9, or remove the setting to let Temper start its own server',
  });
  expect(Date.now() - startedAt).toBeLessThan(15_000);
});

it.concurrent('fails within fifteen seconds where a named server says nothing', async () => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const startedAt = Date.now();
  await expect(connectClient({ address: `127.0.0.1:${port}`, namespace: 'default' }, noProfile)).rejects.toMatchObject({
    type: 'BadConfig',
  });
  expect(Date.now() - startedAt).toBeLessThan(15_000);
  server.close();
});

it('asks a silent server again, and tells any other failure at once', async () => {
  const silent = Object.assign(new Error('14 UNAVAILABLE'), { code: 14, details: '', metadata: {} });
  let asked = 0;
  const ask = () =>
    (asked += 1) < 3 ? Promise.reject(new Error('wrapped', { cause: silent })) : Promise.resolve('answer');
  const silences: number[] = [];
  expect(await patiently(ask, { limitMs: 10_000, onSilence: (sinceMs) => silences.push(sinceMs) })).toBe('answer');
  expect(silences).toHaveLength(2);
  await expect(patiently(() => Promise.reject(silent), { limitMs: 0 })).rejects.toThrow('UNAVAILABLE');
  await expect(patiently(() => Promise.reject(new Error('no such run')), { limitMs: null })).rejects.toThrow(
    'no such run',
  );
});
