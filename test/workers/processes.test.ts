import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openChildLog } from '../../workers/local-stack/child-log.ts';
import { isAlive, markProcess, reapLeftovers } from '../../workers/local-stack/processes.ts';
import { logFields } from '../../workers/logs.ts';

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
  const folder = mkdtempSync(join(tmpdir(), 'logs-'));
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
  rmSync(folder, { recursive: true });
});

it('names the run of what Temporal logs, and holds nothing that JSON cannot', () => {
  const fields = logFields({
    workflowId: 'run/demo',
    attempt: 2,
    taskToken: 'secret',
    size: 3n,
    error: new Error('oh'),
  });
  expect(fields).toMatchObject({ run: 'demo', attempt: 2, size: '3', error: { message: 'oh' } });
  expect(fields).not.toHaveProperty('taskToken');
  expect(logFields({ workflowId: 'other' })).not.toHaveProperty('run');
});
