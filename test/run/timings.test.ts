import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runStep } from './command.ts';
import { openTestPython } from './tools.ts';
import { describeTimings, readProcessorTime, withProcessorTime } from './timings.ts';

const folder = mkdtempSync(join(tmpdir(), 'temper-timings-'));
afterAll(() => rmSync(folder, { recursive: true }));

const python = await openTestPython();
const counted = async (name: string, ...command: [string, ...string[]]) => {
  const file = join(folder, name);
  const ran = await runStep(withProcessorTime({ title: name, command }, python, file), process.env);
  return { ...ran, processorSeconds: readProcessorTime(file) };
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
    const { succeeded, processorSeconds } = await counted('left', 'sh', '-c', `${begin}; ${wait}; true`);
    expect(succeeded).toBe(true);
    expect(processorSeconds).toBeGreaterThanOrEqual(0.3);
  },
);

test('a job that fails or is killed has failed', async () => {
  expect((await counted('fails', 'sh', '-c', 'exit 3')).succeeded).toBe(false);
  expect((await counted('killed', 'sh', '-c', 'kill -9 $$')).succeeded).toBe(false);
});

test('jobs are listed by their processor time', () => {
  const timings = [
    { title: 'checks', seconds: 30, processorSeconds: null },
    { title: 'unit', seconds: 600, processorSeconds: 301.2 },
    { title: 'crash', seconds: 1200, processorSeconds: 512.8 },
  ];
  expect(describeTimings(timings)).toEqual([
    'processor time, minutes of the clock, job',
    '    513 s    20.0 min  crash',
    '    301 s    10.0 min  unit',
    '      – s     0.5 min  checks',
    '    814 s in all',
  ]);
});
