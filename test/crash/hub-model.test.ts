/** A model of the Hugging Face hub, by its name, from a hub of our own: downloaded, trained, and kept at its commit. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openTools } from '../run/tools.ts';
import { Project, ticTacToe } from '../stack.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const SIZE = ['--groups-per-step', '2', '--group-size', '8', '--eval-scenarios', '1', '--seed', '5'];

let project = new Project({ folder: inject('project') });
const folder = join(project.folder, 'hosted');
let hub: ChildProcess;

beforeAll(async () => {
  mkdirSync(folder);
  cpSync(here('../../gpu-worker/temper_gpu/pocket/model'), folder, { recursive: true });
  const { python } = await openTools();
  hub = spawn(python, ['-m', 'tests.model.hub_server', folder], { cwd: here('../../gpu-worker'), stdio: 'pipe' });
  const [address] = (await once(hub.stdout!, 'data')) as [Buffer];
  const env = {
    HF_ENDPOINT: String(address).trim(),
    HF_HOME: join(project.folder, 'huggingface'),
    TEMPER_PYTHON: python,
  };
  project = new Project({ folder: project.folder, env });
});
afterAll(() => void hub.stdin?.end());

const train = (run: string, steps: number, model = 'owner/model') =>
  project.run('train', ticTacToe(), '--run', run, '--steps', String(steps), '--base-model', model, ...SIZE);
const shown = async (run: string) => (await project.show<{ row: { baseModel: string; step: number } }>(run)).row;

test('that cannot be had ends the command before anything is started', async () => {
  const { code, stdout, stderr } = await train('missing', 1, 'owner/other');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(
    /^temper: http:\S+ has no model owner\/other, or it is private; correct the name, or set HF_TOKEN/m,
  );
  const revision = await train('missing', 1, 'owner/model@v9');
  expect(revision.stderr).toContain('the model owner/model has no revision v9; name a branch, tag or commit');
});

test('is downloaded once, trained by its name, and stays at its commit where the hub is not asked again', async () => {
  const first = await train('hosted', 1);
  expect(first.code, first.stdout + first.stderr).toBe(0);
  expect(first.stderr).toContain('the model owner/model is on this machine');
  const { baseModel } = await shown('hosted');
  expect(baseModel).toMatch(/^owner\/model@[0-9a-f]{40}$/);

  hub.kill();
  const further = ['--run', 'further', '--steps', '1', '--base-model', 'owner/model'];
  await project.done('train', ticTacToe(), '--from', 'hosted@1', ...further);
  expect(await shown('further')).toMatchObject({ baseModel, step: 1 });

  expect(await project.done('verify', 'hosted')).toContain('have the same bytes');
});
