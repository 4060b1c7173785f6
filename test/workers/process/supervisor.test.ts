/** Supervisor, lock and leash, with real programs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { StackEvent } from '../../../workers/events.ts';
import { runCommand, leashed } from '../../../workers/process/command.ts';
import { openChildLog } from '../../../workers/process/child-log.ts';
import { processStartTime } from '../../../workers/process/processes.ts';
import { supervise } from '../../../workers/process/supervisor.ts';
import { withFileLock } from '../../../store/bytes/file-lock.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const folder = temporaryFolder();

function superviseShell(script: string) {
  const events: StackEvent[] = [];
  const command = ['sh', '-c', script];
  const fixed = { agentFile: null, standbyCommand: null, env: process.env, cwd: folder, stopMs: 200 };
  const spec = { ...fixed, name: 'child', command, ready: { kind: 'told' as const } };
  const log = openChildLog(folder, 'child');
  const supervised = supervise(spec, log, (event) => void events.push(event));
  const deaths = () => events.filter((event) => event.kind === 'died');
  const wasReady = () => events.some((event) => event.kind === 'child' && event.child.state === 'ready');
  const stop = async () => {
    await supervised.stop();
    log.close();
  };
  return { supervised, deaths, wasReady, stop };
}

it('restarts a child that has died after a growing pause, and says how it died', async () => {
  const { deaths, stop } = superviseShell('echo ready >&3; echo "no memory" >&2; exit 3');
  await expect.poll(() => deaths().length).toBeGreaterThan(2);
  await stop();
  expect(deaths()[0]).toMatchObject({ exit: 'exit code 3', deaths: 1 });
  expect(deaths()[0]?.lastLines).toContain('no memory');
  expect(
    deaths()
      .map(({ restartInMs }) => restartInMs)
      .slice(0, 3),
  ).toEqual([200, 400, 800]);
});

it('ends a child that ignores SIGTERM, for good', async () => {
  const { supervised, deaths, stop } = superviseShell("trap '' TERM; echo port 7 >&3; while :; do sleep 0.05; done");
  await expect.poll(() => supervised.status().state).toBe('ready');
  const pid = supervised.status().pid ?? 0;
  await stop();
  expect(supervised.status()).toMatchObject({ state: 'stopped', pid: null });
  expect([processStartTime(pid), deaths()]).toEqual([null, []]);
});

it('notices the end of a program while what it started still holds its output', async () => {
  const script = 'sleep 120 & echo $!; echo ready; printf "last words"; kill -9 $$';
  const { code, output } = await runCommand('sh', ['-c', script]);
  const { deaths, wasReady, stop } = superviseShell(script);
  await expect.poll(() => deaths().length).toBeGreaterThan(0);
  await stop();
  const died = deaths().map(({ exit, lastLines }) => [exit, ...lastLines]);
  for (const [exit, pid, ready, words] of [[code, ...output.split('\n')], ...died]) {
    expect([ready, words, processStartTime(Number(pid))]).toEqual(['ready', 'last words', expect.any(String)]);
    expect([null, 'SIGKILL']).toContain(exit);
    process.kill(Number(pid));
  }
  // The word on its output counts for nothing.
  expect(wasReady()).toBe(false);
});

it('does work under a lock once at a time', async () => {
  const order: string[] = [];
  const lock = (name: string, work: () => Promise<void>) =>
    withFileLock(join(folder, 'lock'), work, () => void order.push(`${name} waits`));
  const first = lock('first', async () => {
    await expect.poll(() => order.length).toBeGreaterThan(0);
    order.push('first is done');
  });
  await Promise.all([first, lock('second', async () => void order.push('second is done'))]);
  expect(order).toEqual(['second waits', 'first is done', 'second is done']);
});

it.runIf(process.platform === 'linux')('ends a program with the process that started it', async () => {
  const starting = `console.log(require('node:child_process').spawn(...${JSON.stringify(leashed('sleep', ['600']))}).pid); setInterval(() => {}, 1000)`;
  const parent = spawn(process.execPath, ['-e', starting], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  expect(processStartTime(pid)).not.toBeNull();
  parent.kill('SIGKILL');
  await expect.poll(() => processStartTime(pid)).toBeNull();
});
