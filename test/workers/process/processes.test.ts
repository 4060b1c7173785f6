import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { openChildLog } from '../../../workers/process/child-log.ts';
import { isAlive, markProcess, reapLeftovers } from '../../../workers/process/processes.ts';
import { splitLines } from '../../../workers/process/command.ts';
import { logFields } from '../../../workers/worker/logs.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

it('ends what was left behind, and nothing that only has its number', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const mark = markProcess('left', child.pid ?? 0);
  if (mark === null) throw new Error('no mark');
  expect(await reapLeftovers([{ ...mark, startTime: 'another time' }])).toEqual([]);
  expect(isAlive(mark)).toBe(true);
  expect(await reapLeftovers([mark])).toEqual(['left']);
  expect(isAlive(mark)).toBe(false);
});

it('files every line of a child as JSON, and shows people the message alone', async () => {
  const folder = temporaryFolder();
  const log = openChildLog(folder, 'gpu-worker');
  expect(log.write('Traceback: oh')).toBe('Traceback: oh');
  expect(log.write('{"level":"error","msg":"step failed","run":"a","error":"no memory"}')).toBe(
    'step failed: no memory',
  );
  expect(log.write('{not json')).toBe('{not json');
  log.close();
  await expect.poll(() => readFileSync(join(folder, 'gpu-worker.jsonl'), 'utf8').trim().split('\n').length).toBe(3);
  const lines = readFileSync(join(folder, 'gpu-worker.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines[0]).toMatchObject({ level: 'info', process: 'gpu-worker', msg: 'Traceback: oh' });
  expect(lines[1]).toMatchObject({ run: 'a' });
});

it('keeps two files of a child that prints without end', async () => {
  const folder = temporaryFolder();
  const maxBytes = 10_000;
  const log = openChildLog(folder, 'worker', maxBytes);
  for (let line = 0; line < 5000; line++) log.write(`line ${line} ${'x'.repeat(100)}`);
  log.close();
  const newest = join(folder, 'worker.jsonl');
  await expect.poll(() => readFileSync(newest, 'utf8')).toContain('line 4999 ');
  expect(readdirSync(folder).toSorted()).toEqual(['worker.jsonl', 'worker.jsonl.1']);
  for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).size).toBeLessThan(2 * maxBytes);
});

it('splits what a child prints into lines, whatever its pieces, and cuts a line without end', async () => {
  const lines: string[] = [];
  const pieces = [
    'one\r',
    '\ntwo\nth',
    'ree\rfour\n',
    '\n',
    ...Array.from({ length: 20 }, () => 'x'.repeat(10_000)),
    'end',
  ];
  const stream = Readable.from(pieces.map((piece) => Buffer.from(piece)));
  splitLines(stream, (line) => lines.push(line));
  await once(stream, 'end');
  expect(lines.slice(0, 5)).toEqual(['one', 'two', 'three', 'four', '']);
  expect(lines.slice(5).join('')).toBe(`${'x'.repeat(200_000)}end`);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(80_000);
});

it('names the run of what Temporal logs, and holds nothing that JSON cannot', () => {
  const fields = logFields({
    workflowId: 'run/a-store/demo',
    attempt: 2,
    taskToken: 'secret',
    size: 3n,
    error: new Error('oh'),
  });
  expect(fields).toMatchObject({ run: 'demo', attempt: 2, size: '3', error: { message: 'oh' } });
  expect(fields).not.toHaveProperty('taskToken');
  expect(logFields({ workflowId: 'other' })).not.toHaveProperty('run');
});
