/** Old weights are removed as a run goes, SIGKILL of the TypeScript worker between a mark and the removals. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { Project, succeed } from '../stack.ts';
import { until } from '../until.ts';

const STEPS = 24;
const LINE = ['--base-model', 'pocket', '--steps', String(STEPS), '--eval-every', '4', '--examples-per-step', '2'];

const project = new Project({ folder: inject('project') });
const sftLine = (run: string) => ['train', 'sums.jsonl', '--run', run, ...LINE, '--seed', '3'];

/** States of weights by step, as the command line lists them. */
async function states(run: string): Promise<Record<string, number[]>> {
  const rows = JSON.parse(await project.done('checkpoints', run, '--json')) as { step: number; weights: string }[];
  const byState: Record<string, number[]> = {};
  for (const { step, weights } of rows.toReversed()) (byState[weights] ??= []).push(step);
  return byState;
}

/** Which of a run's adapters and optimizer states are there, by step. */
function blobsOf(run: string): string[] {
  const steps = readdirSync(project.path('store', 'runs', run, 'branches', '0', 'steps'));
  return steps.map((step) => {
    const { adapter, optimizer } = JSON.parse(readFileSync(project.manifest(run, Number(step)), 'utf8')) as Weights;
    const [hasAdapter, hasOptimizer] = [adapter, optimizer].map(({ key }) => existsSync(project.path('store', key)));
    return `${step} ${hasAdapter} ${hasOptimizer}`;
  });
}

type Weights = Record<'adapter' | 'optimizer', { key: string }>;

test('killed at a mark and at removals, a run stores in the end what an undisturbed one does, and goes on', async () => {
  const lines = Array.from({ length: 30 }, (_, number) => ({
    messages: [
      { role: 'user', content: `${number}+1=` },
      { role: 'assistant', content: String(number + 1) },
    ],
  }));
  writeFileSync(join(project.folder, 'sums.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

  const killed = project.start(...sftLine('pruned-killed'));
  const points = ['pruned.after', 'blob-removal.before', 'blob-removal.after'];
  for (const [index, point] of points.entries()) {
    const row = `retention ${index}`;
    project.aim('typescript-worker', { row, point, occurrence: 3 });
    await until(`the worker is killed at ${point}`, () => project.hit(row) !== null);
  }
  await succeed(killed.ended);
  const expected = {
    kept: [0, ...Array.from({ length: 10 }, (_, index) => STEPS - 9 + index)],
    // The first step scores its examples, and then every fourth.
    adapter: [1, 4, 8, 12],
    pruned: [2, 3, 5, 6, 7, 9, 10, 11, 13, 14],
  };
  expect(await states('pruned-killed')).toEqual(expected);
  expect(await project.done('verify', 'pruned-killed')).toContain('have the same bytes');
  const left = blobsOf('pruned-killed');

  await project.done(...sftLine('pruned-whole'));
  expect(project.committed('pruned-killed')).toEqual(project.committed('pruned-whole'));
  expect(blobsOf('pruned-whole')).toEqual(left);
  expect(left.filter((line) => line.endsWith('true true'))).toHaveLength(11);
  expect(left.filter((line) => line.endsWith('false false'))).toHaveLength(10);

  expect(await project.run('rollback', 'pruned-killed', '--step', '8')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('pruned-killed@8 must have its optimizer state'),
  });
  expect(await project.run('train', 'agent.ts', '--from', 'pruned-killed@8', '--run', 'again')).toMatchObject({
    code: 2,
  });
  await project.done('train', 'sums.jsonl', '--from', 'pruned-killed', '--run', 'pruned-child', '--steps', '1');
});
