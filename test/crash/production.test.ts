/** A run that trains recorded conversations, SIGKILL of the GPU worker between two of its steps. */
import { cpSync } from 'node:fs';
import { expect, inject, test } from 'vitest';

import { FileStore } from '../../store/bytes/file-store.ts';
import { rolloutsKey } from '../../store/layout.ts';
import { listGroups, readRollouts } from '../../store/records/groups/group-files.ts';
import { Project, succeed, ticTacToe } from '../stack.ts';
import { rate, record } from '../store/records/recorded.ts';
import { until } from '../until.ts';

const project = new Project({ folder: inject('project') });
const store = new FileStore(project.path('store'));
const SIZE = ['--groups-per-step', '2', '--group-size', '8', '--eval-scenarios', '4', '--learning-rate', '0.005'];

/** A step's attempts, recorded as if the checkpoint before the step had served them. */
async function recordStep(step: number): Promise<void> {
  const place = { run: 'served', branch: 0, step };
  for (const group of await listGroups(store, place)) {
    const { rollouts } = (await readRollouts(store, rolloutsKey({ ...place, group })))!;
    for (const { calls, reward } of rollouts.attempts) {
      const turns = calls.map((call) => ({ call, policy: `served@${step - 1}` }));
      await rate(store, 'served', (await record(store, 'served', turns)).conversation, reward ?? 0);
    }
  }
}

const learn = (served: string, run: string): string[] => {
  const what = ['--from-production', served, '--from', 'served@2', '--epochs', '2', '--groups-per-step', '8'];
  return ['train', ticTacToe(), ...what, '--run', run, '--eval-scenarios', '4', '--learning-rate', '0.002'];
};

test('conversations of two policies are trained to the same bytes, killed or not, and each by one run', async () => {
  await project.done('train', ticTacToe(), '--base-model', 'pocket', '--run', 'served', '--steps', '2', ...SIZE);
  await recordStep(1);
  await recordStep(2);
  cpSync(project.path('store/production/served'), project.path('store/production/again'), { recursive: true });
  expect(await project.done(...learn('again', 'learned-whole'))).toMatch(
    /^trains \d+ conversations of again with feedback$/m,
  );

  const killed = project.start(...learn('served', 'learned-killed'));
  await until('a step is told', () => /^step +1\//m.test(killed.output()));
  await project.killGpuWorker();
  await succeed(killed.ended);
  expect(project.committed('learned-killed')).toEqual(project.committed('learned-whole'));
  // Both policies are older than the second step.
  expect(await project.done('verify', 'learned-killed@2')).toContain('adapter and optimizer state have the same bytes');

  const again = await project.run(...learn('served', 'another'));
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('served has 0 new conversations with feedback'),
  });
});
