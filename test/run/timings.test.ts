import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runStep } from './command.ts';
import { openTestPython } from './tools.ts';
import { describeTimings, readProcessorTime, spentSeconds, withProcessorTime } from './timings.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const folder = temporaryFolder();

const python = await openTestPython();
const ofShell = (title: string, text: string) =>
  withProcessorTime({ title, command: ['sh', '-c', text] }, python, join(folder, title));
const counted = async (title: string, text: string) => {
  const ran = await runStep(ofShell(title, text), process.env);
  return { ...ran, processorSeconds: readProcessorTime(join(folder, title)) };
};
/** Computes until it has taken so much processor time. */
const busy = (seconds: number) => `while (process.cpuUsage().user < ${seconds * 1e6});`;

test.skipIf(process.platform !== 'linux')(
  'the processor time of a job is also that of processes which its commands leave behind',
  async () => {
    const [pid, left] = [join(folder, 'pid'), `${process.execPath} -e '${busy(0.3)}'`];
    const begin = `(setsid sh -c "echo \\$\\$ > ${pid}; exec ${left}" &)`;
    // Its parent has ended: it is there until the job has waited for it.
    const wait = `until test -s ${pid}; do sleep 0.05; done; while kill -0 $(cat ${pid}); do sleep 0.05; done`;
    const { succeeded, processorSeconds } = await counted('left', `${begin}; ${wait}; true`);
    expect(succeeded).toBe(true);
    expect(processorSeconds).toBeGreaterThanOrEqual(0.3);
  },
);

test('a job that fails or is killed has failed', async () => {
  expect((await counted('fails', 'exit 3')).succeeded).toBe(false);
  expect((await counted('killed', 'kill -9 $$')).succeeded).toBe(false);
});

test('jobs are listed by their processor time; what belongs to none makes the sum whole', () => {
  const timings = [
    { title: 'checks', seconds: 30, processorSeconds: null },
    { title: 'unit', seconds: 600, processorSeconds: 301.2 },
    { title: 'crash', seconds: 1200, processorSeconds: 512.8 },
  ];
  expect(describeTimings(timings, 850, 20.5)).toEqual([
    'processor time, minutes of the clock, job',
    '    513 s    20.0 min  crash',
    '    301 s    10.0 min  unit',
    '      – s     0.5 min  checks',
    '     36 s              tools, installed or looked for, and the suite itself',
    '    850 s    20.5 min  in all',
  ]);
});

test.skipIf(process.platform !== 'linux')('the suite counts what it and its children have spent', async () => {
  const before = spentSeconds()!;
  spawnSync(process.execPath, ['-e', busy(0.3)]);
  expect(spentSeconds()! - before).toBeGreaterThanOrEqual(0.3);
});

test.skipIf(process.platform !== 'linux')(
  'a job of a suite that is stopped is ended with all its processes, also those that ignore it',
  async () => {
    const [pid, stopped] = [join(folder, 'stubborn'), new AbortController()];
    const stubborn = `(setsid sh -c "trap '' TERM; echo \\$\\$ > ${pid}; while true; do sleep 0.1; done" &) ; sleep 1000`;
    const running = runStep(ofShell('ended', stubborn), process.env, { signal: stopped.signal });
    await expect.poll(() => existsSync(pid) && readFileSync(pid, 'utf8')).toMatch(/\d\n/);
    stopped.abort();
    expect((await running).succeeded).toBe(false);
    expect(existsSync(`/proc/${readFileSync(pid, 'utf8').trim()}`)).toBe(false);
  },
);

test('a job that is stopped before it begins, or takes longer than it may, is ended', async () => {
  const [long, signal] = [ofShell('long', 'sleep 1000'), AbortSignal.abort()];
  expect((await runStep(long, process.env, { signal })).succeeded).toBe(false);
  expect((await runStep(long, process.env, { limitMinutes: 1 / 600 })).succeeded).toBe(false);
});
