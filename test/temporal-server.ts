/** A Temporal dev server for tests: in memory, on a free port, with the search attributes of runs; ended by its pid. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

import { Connection } from '@temporalio/client';

import { cacheFolder } from '../workers/project/folders.ts';
import type { StackEvent } from '../workers/events.ts';
import { findTemporalCli } from '../workers/install/temporal-cli.ts';
import { SEARCH_ATTRIBUTES } from '../workflows/search-attributes.ts';
import { freePort } from './free-port.ts';

export interface TestServer {
  address: string;
  namespace: string;
  stop(): Promise<void>;
}

/** The address of one that runs already, for whoever plays the project `workflows` many times. */
export const SHARED_SERVER_VARIABLE = 'TEMPER_TEST_TEMPORAL_SERVER';

const START_TIMEOUT_MS = 60_000;

export async function startTestServer(): Promise<TestServer> {
  const port = await freePort();
  const attributes = Object.entries(SEARCH_ATTRIBUTES).flatMap(([name, type]) => [
    '--search-attribute',
    `${name}=${type}`,
  ]);
  const quiet = ['--headless', '--log-level', 'never'];
  const server = spawn(
    await temporalCli(),
    ['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), ...quiet, ...attributes],
    // Rarer garbage collections, for memory: a sixth of its processor time.
    { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, GOGC: '400' } },
  );
  const address = `127.0.0.1:${port}`;
  await untilServing(address, server);
  return { address, namespace: 'default', stop: () => stop(server) };
}

/** The one the local stack uses; where none is found, this installs it, and says so. */
async function temporalCli(): Promise<string> {
  const options = { env: process.env, cache: cacheFolder(), databaseServer: null, onEvent: tell };
  return (await findTemporalCli(options)).path;
}

function tell(event: StackEvent): void {
  if (event.kind === 'progress' && event.finished) console.error(event.message);
}

async function untilServing(address: string, server: ChildProcess): Promise<void> {
  const failed = once(server, 'error').then(([error]: unknown[]) => Promise.reject(error as Error));
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline && server.exitCode === null) {
    if (await Promise.race([canDescribe(address), failed])) return;
    await delay(200);
  }
  server.kill('SIGKILL');
  throw new Error(`Temporal's dev server did not come up at ${address}`);
}

async function canDescribe(address: string): Promise<boolean> {
  try {
    const connection = await Connection.connect({ address, connectTimeout: 1000 });
    await connection.workflowService.describeNamespace({ namespace: 'default' });
    await connection.close();
    return true;
  } catch {
    return false;
  }
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill('SIGTERM');
  const forced = setTimeout(() => server.kill('SIGKILL'), 5000);
  await ended;
  clearTimeout(forced);
}
