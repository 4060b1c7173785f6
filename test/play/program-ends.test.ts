/** How the processes of an attempt end: with it, with their worker, or by themselves. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';

import { command } from '../../sdk/index.ts';
import { nodeFlags } from '../../workers/process/module-path.ts';
import { commandLines } from '../processes.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { markOf, playAttempts, playOne } from './play.ts';
import { sharedEngine } from './shared-engine.ts';
import { ROLLOUT, script } from './program-script.ts';

/** In the seconds that its programs sleep: another run of these tests on this machine has other ones. */
const MARK = process.pid;

const engine = await sharedEngine();

const play = (text: string) => playOne(engine, script(text), { rollout: ROLLOUT });

describe('how a program ends', () => {
  test('an exit code is data, with the last lines of stderr', async () => {
    const attempt = await play(`for (let i = 0; i < 20; i++) console.error('line ' + i); process.exit(3)`);
    expect(attempt.failure?.message).toMatch(/ended with exit code 3; last lines of stderr:\nline 10\n[^]*line 19$/);
  });

  test('a fault of its own is data', async () => {
    expect((await play(`process.abort()`)).failure?.message).toMatch(/ended with SIGABRT/);
  });

  test('an attempt that is over ends it, with all that it started', async () => {
    const started = `sleep 1001.${MARK} & setsid sleep 1002.${MARK} & setsid env -i sleep 1003.${MARK} &`;
    // Gone as soon as its parent is: nobody knows whose it was.
    const orphan = `(setsid sleep 1004.${MARK} &);`;
    await playUntil(4, /^100[1-4]/, `${started} ${orphan} sleep 1005.${MARK}`);
    expect(sleeping(/^100[1-5]/)).toEqual([]);
  });

  test('one that forks without end is ended', async () => {
    await playUntil(5, /^3001/, `f() { sleep 3001.${MARK} & sleep 0.02; f; }; f`);
    expect(sleeping(/^3001/)).toEqual([]);
  });

  test('what it leaves behind ends with the attempt', async () => {
    const rollout = command(['/bin/sh', '-c', `sleep 2001.${MARK} & setsid sleep 2002.${MARK} & echo 1`]);
    expect(await playOne(engine, rollout)).toMatchObject({ reward: 1 });
    expect(sleeping(/^200[12]/)).toEqual([]);
  });

  test('one that prints without end is ended, and its log is bounded', async () => {
    const attempt = await playOne(engine, command(['/bin/sh', '-c', 'yes']), { rollout: ROLLOUT });
    expect(attempt.failure?.message).toMatch(/may print 16777216 bytes, it printed more/);
    expect(attempt.logs).toHaveLength(201);
  });

  test('it ends with its worker, whatever ended that', async () => {
    const program = fileURLToPath(new URL('program-worker.ts', import.meta.url));
    const worker = spawn(process.execPath, [...nodeFlags(), program, temporaryFolder(), `${MARK}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void worker.kill('SIGKILL'));
    await until('its programs sleep', () => sleeping(/^400[12]/).length === 2, 100_000, 20);
    worker.kill('SIGKILL');
    await until('its programs are gone', () => sleeping(/^400[12]/).length === 0, 100_000, 20);
  });
});

/** Plays a shell's program until so many processes sleep, and cancels its attempt. */
async function playUntil(count: number, pattern: RegExp, text: string): Promise<void> {
  const ended = new AbortController();
  const playing = playOne(engine, command(['/bin/sh', '-c', text]), { rollout: ROLLOUT, signal: ended.signal });
  await until('all of it sleep', () => sleeping(pattern).length >= count, 100_000, 10);
  ended.abort();
  expect((await markOf(playing)).message).toBe('the attempt was cancelled');
}

/** The whole seconds that processes of these tests, which are alive, sleep. */
function sleeping(pattern: RegExp): string[] {
  const seconds = commandLines().map((line) => new RegExp(`^sleep (\\d+)\\.${MARK} $`).exec(line)?.[1]);
  return seconds.filter((each) => each !== undefined && pattern.test(each)) as string[];
}

test('a group that is cancelled does not wait for a place', async () => {
  const rollout = command(['/bin/sh', '-c', `sleep 5001.${MARK}; echo 1`], { concurrency: 1 });
  const ended = new AbortController();
  const playing = playAttempts(engine, rollout, { attempts: 3, rollout: ROLLOUT, signal: ended.signal });
  await until('it plays', () => sleeping(/^5001/).length === 1, 100_000, 10);
  ended.abort();
  expect((await markOf(playing)).message).toBe('the attempt was cancelled');
  expect(sleeping(/^5001/)).toEqual([]);
});
