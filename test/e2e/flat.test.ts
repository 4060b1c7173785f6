/** The control of every curve: where nothing is learned, nothing changes. */
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { Project } from '../crash/project.ts';
import { runTemper } from './command.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const STEPS = 4;
const project = new Project();

afterAll(() => project.close());

test('with a learning rate of 0 every checkpoint has the same weights', async () => {
  const size = ['--steps', String(STEPS), '--groups-per-step', '4', '--group-size', '8', '--eval-scenarios', '16'];
  const flags = ['--run', 'flat', '--base-model', 'pocket', '--learning-rate', '0', ...size];
  const { code, stdout, stderr } = await runTemper(project.folder, ['train', AGENT, ...flags]);
  expect(code, stdout + stderr).toBe(0);

  const committed = project.committed('flat');
  const adapters = Array.from(
    { length: STEPS + 1 },
    (_, step) => committed[`0/checkpoints/${step}/adapter/adapter_model.safetensors`],
  );
  expect(adapters).not.toContain(undefined);
  expect(new Set(adapters).size).toBe(1);

  const { stdout: json } = await runTemper(project.folder, ['show', 'flat', '--json']);
  expect(JSON.parse(json)).toMatchObject({ state: 'completed', step: STEPS, steps: STEPS });
  const trained = Object.keys(committed).filter((file) => /^0\/steps\/[1-9]\/manifest\.json$/.test(file));
  expect(trained).toHaveLength(STEPS);
});
