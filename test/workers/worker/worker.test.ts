import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { examine } from '../../../workers/doctor/doctor.ts';
import { modulePath, nodeFlags } from '../../../workers/process/module-path.ts';
import { openProjectStore } from '../../../workers/config/project-store.ts';
import { sdkImports } from '../../cli/agents.ts';
import {
  childPid,
  isRunning,
  makeProject,
  openStack,
  removeProject,
  STAND_INS,
  until,
} from '../local-stack/stack-harness.ts';

const clean: (() => unknown)[] = [];
const commands = { gpuWorker: STAND_INS.gpuWorker };

afterEach(async () => {
  for (const undo of clean.splice(0).toReversed()) await undo();
});

function project(): string {
  const folder = makeProject();
  clean.push(() => removeProject(folder));
  return folder;
}

function writeAgent(folder: string, reward: number, name = 'coin'): string {
  mkdirSync(join(folder, 'coin'), { recursive: true });
  const file = join(folder, 'coin', 'agent.ts');
  const scenarios = `[{ id: 'a' }, { id: 'b' }]`;
  writeFileSync(
    file,
    `${sdkImports('defineAgent')}\nexport default defineAgent({ name: '${name}', scenarios: ${scenarios}, rollout: () => ${reward} });\n`,
  );
  return file;
}

async function opened(folder: string, agentFile: string) {
  const { stack, events } = await openStack(folder, { commands, agentFile });
  clean.push(() => stack.close());
  return { stack, events };
}

it('polls the workflows and its agent, is back after a kill, and is started anew when the agent changed', async () => {
  const folder = project();
  const file = writeAgent(folder, 1);
  const { events } = await opened(folder, file);
  const storeId = await (await openProjectStore(folder, process.env)).id();
  const checks = async () => {
    const found = await examine({ project: folder, env: process.env, agents: ['coin'] });
    return new Map(found.map((check) => [check.name.replace(storeId, 'ID'), check]));
  };
  await expect.poll(async () => (await checks()).get('queue rollout/ID/coin')?.ok, { timeout: 15_000 }).toBe(true);
  const all = await checks();
  const failures = [...all].filter(([, check]) => check.ok === false).map(([name]) => name);
  // The GPU worker is a stand-in that polls nothing.
  expect(failures.filter((name) => name !== 'Python environment')).toEqual(['queue gpu/ID']);
  expect(all.get('queue gpu/ID')).toMatchObject({
    detail: 'no worker polls it',
    remedy: 'start a GPU worker, or temper dev',
  });
  expect(all.get('namespace')?.detail).toBe('default, finished runs are kept for 365 days');

  const readyAgain = (times: number) => () =>
    events.filter(
      (event) => event.kind === 'child' && event.child.name === 'worker-coin' && event.child.state === 'ready',
    ).length >= times;
  const first = childPid(folder, 'worker-coin');
  process.kill(first, 'SIGKILL');
  await until('the worker is back', readyAgain(2), 100_000);

  const second = childPid(folder, 'worker-coin');
  await opened(folder, file);
  expect(childPid(folder, 'worker-coin')).toBe(second);
  writeAgent(folder, 0);
  await opened(folder, file);
  expect(childPid(folder, 'worker-coin')).not.toBe(second);
  expect(isRunning(second)).toBe(false);
});

it('leaves the worker of another agent alone whose file has the same name', async () => {
  const folder = project();
  const [first, second] = ['dime', 'penny'].map((name) => writeAgent(join(folder, name), 1, name));
  await opened(folder, first!);
  const pid = childPid(folder, 'worker-coin');
  await opened(folder, second!);
  expect(childPid(folder, 'worker-coin')).toBe(pid);
  expect(childPid(folder, 'worker-coin-2')).not.toBe(pid);
  await opened(folder, second!);
  const found = await examine({ project: folder, env: process.env, agents: ['dime', 'penny'] });
  const queues = found.filter((check) => check.name.startsWith('queue rollout')).map(({ ok }) => ok);
  expect(queues).toEqual([true, true]);
});

it('ends when its leash is gone, also while no server is there', async () => {
  const folder = project();
  const options = JSON.stringify({ project: folder, agents: [], leash: true });
  const env = { ...process.env, TEMPORAL_ADDRESS: '127.0.0.1:9', TEMPORAL_TLS: 'false' };
  const child = spawn(process.execPath, [...nodeFlags(), modulePath('./worker/worker-main'), options], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  clean.push(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  child.stdout.on('data', (bytes: Buffer) => lines.push(bytes.toString()));
  await until('it waits for the server', () => lines.join('').includes('waiting for the Temporal server'), 100_000);
  child.stdin.end();
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
});

it('says what is there and what to do where nothing runs', async () => {
  const folder = project();
  const found = await examine({ project: folder, env: process.env, agents: [] });
  const byName = new Map(found.map((check) => [check.name, check]));
  expect([...byName.keys()]).toEqual([
    'Node',
    'Python environment',
    'devices',
    'Temporal CLI',
    'store',
    'engine',
    'Temporal server',
  ]);
  expect(byName.get('Node')?.ok).toBe(true);
  expect(byName.get('store')?.ok).toBe(true);
  expect(byName.get('Temporal server')).toMatchObject({
    ok: null,
    remedy: 'temper dev starts one, temper train does so by itself',
  });
});
