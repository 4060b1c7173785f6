import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { examine } from '../../../workers/doctor/doctor.ts';
import { openProjectStore } from '../../../workers/config/project-store.ts';
import { codeCommand, codeFile } from '../../compiled.ts';
import { openStack, STAND_INS, until } from '../local-stack/stack-harness.ts';
import { atItsEnd, temporaryFolder } from '../../temporary-folder.ts';

function writeAgent(folder: string): string {
  const file = join(folder, 'agent.ts');
  const definition = `{ name: 'coin', scenarios: [{ id: 'a' }, { id: 'b' }], rollout: () => 1 }`;
  writeFileSync(
    file,
    `import { defineAgent } from '${codeFile('sdk/agent/define-agent.ts')}';\nexport default defineAgent(${definition});\n`,
  );
  return file;
}

it('polls the workflows and its agent', async () => {
  const folder = temporaryFolder();
  const agentFile = writeAgent(folder);
  const { stack } = await openStack(folder, { commands: { gpuWorker: STAND_INS.gpuWorker }, agentFile });
  atItsEnd(() => stack.close());
  const storeId = await (await openProjectStore(folder, process.env)).id();
  const checks = async () => {
    const found = await examine({ project: folder, env: process.env, agents: ['coin'] });
    return new Map(found.map((check) => [check.name.replace(storeId, 'ID'), check]));
  };
  const isPolled = async () => (await checks()).get('queue rollout/ID/coin')?.ok;
  await expect.poll(isPolled, { interval: 1000 }).toBe(true);
  const all = await checks();
  const failures = [...all].filter(([, check]) => check.ok === false).map(([name]) => name);
  // The GPU worker is a stand-in that polls nothing.
  expect(failures.filter((name) => name !== 'Python environment')).toEqual(['queue gpu/ID']);
  expect(all.get('queue gpu/ID')).toMatchObject({
    detail: 'no worker polls it',
    remedy: 'start a GPU worker, or temper dev',
  });
  expect(all.get('namespace')?.detail).toBe('default, finished runs are kept for 365 days');
});

it('ends when its leash is gone, also while no server is there', async () => {
  const folder = temporaryFolder();
  const options = JSON.stringify({ project: folder, agents: [], leash: true });
  const env = { ...process.env, TEMPORAL_ADDRESS: '127.0.0.1:9', TEMPORAL_TLS: 'false' };
  const [node = '', ...words] = codeCommand('workers/worker/worker-main.ts');
  const child = spawn(node, [...words, options], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  atItsEnd(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  child.stdout.on('data', (bytes: Buffer) => lines.push(bytes.toString()));
  await until('it waits for the server', () => lines.join('').includes('waiting for the Temporal server'));
  child.stdin.end();
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
});

it('says what is there and what to do where nothing runs', async () => {
  const folder = temporaryFolder();
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
