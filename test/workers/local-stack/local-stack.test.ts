import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connectClient } from '../../../workers/connection/connection.ts';
import type { StackEvent } from '../../../workers/events.ts';
import type { StackDescription } from '../../../workers/local-stack/protocol/protocol.ts';
import { missingSearchAttributes } from '../../../workers/connection/namespace.ts';
import {
  childPid,
  holdStack,
  isRunning,
  openStack,
  STAND_INS,
  stackFile,
  until,
  WITH_SERVER,
} from './stack-harness.ts';
import { atItsEnd, temporaryFolder } from '../../temporary-folder.ts';

async function opened(folder: string, options: Parameters<typeof openStack>[1] = {}) {
  const { stack, events } = await openStack(folder, options);
  atItsEnd(() => stack.close());
  return { stack, events };
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer().listen(port, '127.0.0.1', () => resolve(server));
    atItsEnd(() => server.close());
  });
}

const mode = (file: string) => (statSync(file).mode & 0o777).toString(8);

const saidStandingBy = (folder: string) =>
  readFileSync(join(folder, '.temper', 'logs', 'gpu-worker.jsonl'), 'utf8').includes('standing by');

/** A command that must not join starts no worker, and registers no model. */
async function leavesItAloneWhenRefused(folder: string): Promise<void> {
  const agentFile = join(folder, 'refused.ts');
  writeFileSync(agentFile, '');
  await until('all of its processes run', () => saidStandingBy(folder));
  const before = stackFile(folder).children;
  const asked = { agentFile, models: { mine: folder } };
  const joining = opened(folder, { ...asked, overrides: { device: 'cuda' } });
  await expect(joining).rejects.toThrow(/--device has no effect here: the local stack of this project runs already/);
  const checkJoined = ({ engine }: StackDescription) => {
    throw new Error(`its base model must be another, got ${engine.dtype}`);
  };
  await expect(opened(folder, { ...asked, checkJoined })).rejects.toThrow('its base model must be another, got auto');
  expect(existsSync(join(folder, '.temper', 'logs', 'worker-refused.jsonl'))).toBe(false);
  expect(readFileSync(join(folder, '.temper', 'models.json'), 'utf8')).not.toContain('mine');
  expect(stackFile(folder).children).toEqual(before);
}

/** Two play the same agent, one of them another one too. */
async function endsTheWorkersOfThoseWhoLeft(folder: string): Promise<void> {
  const agents = ['a.ts', 'b.ts'].map((name) => join(folder, name));
  for (const file of agents) writeFileSync(file, '');
  const [a = '', b = ''] = agents;
  const holders = [];
  for (const agentFile of [a, a, b]) holders.push((await opened(folder, { agentFile })).stack);
  const running = () =>
    stackFile(folder)
      .children.map(({ name }) => name)
      .filter((name) => name.startsWith('worker'));
  expect(running()).toEqual(['worker', 'worker-a', 'worker-b']);
  expect(await holders[2]?.close()).toEqual({ others: 4, agents: [a] });
  expect(await holders[1]?.close()).toEqual({ others: 3, agents: [a] });
  expect(running()).toEqual(['worker', 'worker-a']);
  // One that comes back at once gets a worker of its own.
  const leaving = holders[0]?.close();
  const { stack } = await opened(folder, { agentFile: a });
  await leaving;
  expect(running()).toEqual(['worker', 'worker-a']);
  await stack.close();
  expect(running()).toEqual(['worker']);
}

/** Real processes on a machine that may be busy. */
const PATIENT = { timeout: 90_000 };

describe('a local stack', PATIENT, () => {
  it('starts a server that keeps history for a year and knows the search attributes, and ends it', async () => {
    const folder = temporaryFolder();
    const { stack, events } = await opened(folder, { commands: WITH_SERVER });
    expect(stack.adopted).toBe(false);
    expect((await fetch(stack.uiUrl ?? '', { redirect: 'manual' })).status).toBe(303);
    const client = await connectClient({ address: stack.temporalAddress, namespace: stack.namespace });
    const { config } = await client.connection.workflowService.describeNamespace({ namespace: stack.namespace });
    expect(Number(config?.workflowExecutionRetentionTtl?.seconds)).toBe(365 * 24 * 60 * 60);
    expect(await missingSearchAttributes(client)).toEqual([]);
    await client.close();

    const state = join(folder, '.temper');
    expect([mode(stackFile(folder).socket), mode(join(state, 'engine.key'))]).toEqual(['600', '600']);
    expect(stack.engineKey.length).toBeGreaterThan(40);
    expect(readFileSync(join(state, 'logs', 'gpu-worker.jsonl'), 'utf8')).toContain('"hasKey":true');
    expect(
      events.filter((event) => event.kind === 'child' && event.child.state === 'ready').length,
    ).toBeGreaterThanOrEqual(2);

    const { pid, children } = stackFile(folder);
    await stack.close();
    expect([pid, ...children.map((child) => child.pid)].filter(isRunning)).toEqual([]);
    expect(existsSync(join(state, 'stack.sock'))).toBe(false);
  });

  it('is adopted by a second start, and ends with the last one that holds it', async () => {
    const folder = temporaryFolder();
    const first = await opened(folder);
    const second = await opened(folder);
    expect([first.stack.adopted, second.stack.adopted]).toEqual([false, true]);
    expect(second.stack.temporalAddress).toBe(first.stack.temporalAddress);
    expect(second.stack.engineKey).toBe(first.stack.engineKey);
    await leavesItAloneWhenRefused(folder);
    await endsTheWorkersOfThoseWhoLeft(folder);
    const server = childPid(folder, 'temporal-server');
    expect(await first.stack.close()).toEqual({ others: 1, agents: [] });
    expect(isRunning(server)).toBe(true);
    expect(await second.stack.close()).toEqual({ others: 0, agents: [] });
    expect(isRunning(server)).toBe(false);
  });

  it('is one, however many start at once', async () => {
    const folder = temporaryFolder();
    const holder = holdStack(folder);
    atItsEnd(() => holder.end());
    const inThisProcess = [opened(folder), opened(folder)];
    const stacks = [await holder.opened, ...(await Promise.all(inThisProcess)).map(({ stack }) => stack)];
    expect(new Set(stacks.map((stack) => stack.temporalAddress)).size).toBe(1);
    expect(stacks.filter((stack) => !stack.adopted)).toHaveLength(1);
  });

  it('ends when the command line that holds it is killed', async () => {
    const folder = temporaryFolder();
    const holder = holdStack(folder);
    await holder.opened;
    const { pid, children } = stackFile(folder);
    holder.process.kill('SIGKILL');
    await until('everything has ended', () => ![pid, ...children.map((child) => child.pid)].some(isRunning));
    const again = await opened(folder);
    expect(again.stack.adopted).toBe(false);
  });

  it('starts a child again that was killed, and says with which last words it died', async () => {
    const folder = temporaryFolder();
    const { events } = await opened(folder);
    const before = childPid(folder, 'gpu-worker');
    process.kill(before, 'SIGKILL');
    await until(
      'another GPU worker runs',
      () => isRunning(childPid(folder, 'gpu-worker')) && childPid(folder, 'gpu-worker') !== before,
    );
    const death = events.find((event) => event.kind === 'died');
    expect(death).toMatchObject({
      name: 'gpu-worker',
      exit: 'SIGKILL',
      lastLines: ['gpu worker stands in'],
      deaths: 1,
      restartInMs: 200,
    });
  });

  it("starts an agent's worker again that was killed, and anew once the agent has changed", async () => {
    const folder = temporaryFolder();
    const agentFile = join(folder, 'coin.ts');
    writeFileSync(agentFile, '');
    const { events } = await opened(folder, { agentFile });
    const first = childPid(folder, 'worker-coin');
    process.kill(first, 'SIGKILL');
    const isReady = (event: StackEvent) =>
      event.kind === 'child' && event.child.name === 'worker-coin' && event.child.state === 'ready';
    await until('the worker is back', () => events.filter(isReady).length >= 2);
    const second = childPid(folder, 'worker-coin');
    await opened(folder, { agentFile });
    expect(childPid(folder, 'worker-coin')).toBe(second);
    writeFileSync(agentFile, 'export default 1;');
    await opened(folder, { agentFile });
    expect(childPid(folder, 'worker-coin')).not.toBe(second);
    expect([first, second].filter(isRunning)).toEqual([]);
  });

  it('leaves the worker of another agent alone whose file has the same name', async () => {
    const folder = temporaryFolder();
    const files = ['dime', 'penny'].map((name) => join(folder, name, 'coin', 'agent.ts'));
    for (const file of files) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, '');
    }
    await opened(folder, { agentFile: files[0]! });
    const pid = childPid(folder, 'worker-coin');
    for (let time = 0; time < 2; time += 1) await opened(folder, { agentFile: files[1]! });
    expect(childPid(folder, 'worker-coin')).toBe(pid);
    expect(childPid(folder, 'worker-coin-2')).not.toBe(pid);
    const log = (name: string) => readFileSync(join(folder, '.temper', 'logs', `${name}.jsonl`), 'utf8');
    expect(['worker-coin', 'worker-coin-2'].map((name) => log(name).match(/dime|penny/g))).toEqual([
      ['dime'],
      ['penny'],
    ]);
  });

  it('has a second GPU worker standing by, which takes the place of one that is killed, and ends with it', async () => {
    const folder = temporaryFolder();
    const { stack } = await opened(folder);
    await until('one stands by', () => saidStandingBy(folder));
    const standby = childPid(folder, 'standby-gpu-worker');
    process.kill(childPid(folder, 'gpu-worker'), 'SIGKILL');
    await until('it has taken the place', () => childPid(folder, 'gpu-worker') === standby);
    await until('it answers', () => stackFile(folder).children.some(({ name }) => name === 'standby-gpu-worker'));
    expect((await fetch(`${stack.engineUrl}/health`)).status).toBe(200);
    const left = stackFile(folder).children.map(({ pid }) => pid);
    await stack.close();
    expect(left.filter(isRunning)).toEqual([]);
  });

  it('starts a GPU worker from nothing where the one that stood by is gone too', async () => {
    const folder = temporaryFolder();
    const { events } = await opened(folder);
    await until('one stands by', () => isRunning(childPid(folder, 'standby-gpu-worker')));
    const gone = ['standby-gpu-worker', 'gpu-worker'].map((name) => childPid(folder, name));
    for (const pid of gone) process.kill(pid, 'SIGKILL');
    await until('another runs', () => !gone.includes(childPid(folder, 'gpu-worker')));
    expect(events.filter(({ kind }) => kind === 'died')).toHaveLength(1);
  });

  it('leaves nothing behind when its daemon is killed, and is started again by who holds it', async () => {
    const folder = temporaryFolder();
    const { stack, events } = await opened(folder, { commands: WITH_SERVER });
    const { pid, children, ports } = stackFile(folder);
    process.kill(pid, 'SIGKILL');
    await until('its children have ended', () => !children.some((child) => isRunning(child.pid)));
    await until(
      'another daemon runs',
      () => stackFile(folder).pid !== pid && isRunning(childPid(folder, 'temporal-server')),
      100_000,
    );
    expect(stackFile(folder).ports).toEqual(ports);
    expect(events.some((event) => event.kind === 'notice' && event.message.includes('restarting it'))).toBe(true);
    await stack.close();
    expect(isRunning(stackFile(folder).pid)).toBe(false);
  });
});

describe('a start', PATIENT, () => {
  it('takes no notice of a stale socket and of a file that is no stack', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, '.temper'), { recursive: true });
    writeFileSync(join(folder, '.temper', 'stack.sock'), '');
    writeFileSync(join(folder, '.temper', 'stack.json'), '{"schema":1');
    const { stack } = await opened(folder);
    expect(stack.adopted).toBe(false);
  });

  it('uses the ports of the last one, but for those that a stranger took', async () => {
    const folder = temporaryFolder();
    const first = await opened(folder);
    await first.stack.close();
    const { ports } = stackFile(folder);
    await listen(ports?.engine ?? 0);
    const second = await opened(folder);
    expect(second.stack.temporalAddress).toBe(first.stack.temporalAddress);
    expect(second.stack.uiUrl).toBe(first.stack.uiUrl);
    expect(second.stack.engineUrl).not.toBe(first.stack.engineUrl);
  });

  it('refuses a port that was asked for and is taken', async () => {
    const folder = temporaryFolder();
    const server = await listen(0);
    const { port } = server.address() as { port: number };
    const starting = openStack(folder, { uiPort: port });
    await expect(starting).rejects.toMatchObject({
      type: 'BadConfig',
      message: expect.stringContaining(`port ${port} (--ui-port)`) as string,
    });
  });

  it('works in a folder whose path is too long for a socket', async () => {
    const folder = join(temporaryFolder(), 'a-folder-with-a-rather-long-name'.repeat(4));
    mkdirSync(folder);
    const { stack } = await opened(folder);
    const { socket } = stackFile(folder);
    expect(Buffer.byteLength(socket)).toBeLessThan(104);
    await stack.close();
    expect(existsSync(dirname(socket))).toBe(false);
  });

  it('gives up on a child that ends again and again before it is of use', async () => {
    const folder = temporaryFolder();
    const gpuWorker = [process.execPath, '-e', 'console.error("no such model"); process.exit(1)', '--'];
    const commands = { ...STAND_INS, gpuWorker };
    await expect(openStack(folder, { commands })).rejects.toThrow(
      /the GPU worker did not become ready \(it exited 4 times\)/,
    );
  });
});
