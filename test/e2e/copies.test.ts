/**
 * A real run on the pocket model that is stopped, copied, pruned, and goes on where it was; its copy goes on elsewhere. Both
 * end with the same bytes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FileStore } from '../../store/file-store.ts';
import { readSteps } from '../../store/run-reader.ts';
import { Project, until, type Ended } from '../crash/project.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const STEPS = 10;
const CONFIG = ['--base-model', 'pocket', '--steps', String(STEPS), '--groups-per-step', '2', '--group-size', '8'];
const FLAGS = [...CONFIG, '--eval-scenarios', '8', '--eval-every', '4', '--learning-rate', '4e-3'];

const home = new Project();
const away = new Project();
const backup = join(home.folder, 'backup');
let stoppedAfter: number;

const train = (project: Project) => project.start('train', AGENT, '--run', 'demo', ...FLAGS);
const stepOf = (project: Project): number =>
  (JSON.parse(readFileSync(project.path('store', 'runs', 'demo', 'state.json'), 'utf8')) as { step: number }).step;
const manifest = (project: Project, step: number) =>
  project.path('store', 'runs', 'demo', 'branches', '0', 'steps', String(step), 'manifest.json');

async function expectDone(ended: Promise<Ended>): Promise<string> {
  const { code, output } = await ended;
  expect(code, output).toBe(0);
  return output;
}

/** What stands under a hash; views of pruned checkpoints and the marks of pruning do not. */
function bytesOf(project: Project): Record<string, string> {
  const files = Object.entries(project.committed('demo')).filter(([file]) => !/checkpoints\/|pruned\.json$/.test(file));
  return Object.fromEntries(files);
}

beforeAll(async () => {
  const first = train(home);
  await until('step 1 is committed', () => existsSync(manifest(home, 1)));
  await expectDone(home.run('stop', 'demo'));
  await expectDone(first.ended);
  stoppedAfter = stepOf(home);
  await expectDone(home.run('checkpoints', 'demo', 'push', backup));
  await expectDone(home.run('checkpoints', 'demo', 'prune', '--keep-last', '1'));
  await expectDone(train(home).ended);
});

afterAll(async () => {
  await home.close();
  await away.close();
});

test('a run that was stopped and pruned goes on to its end, is whole, and its last step made again has the same bytes', async () => {
  expect(stoppedAfter).toBeLessThan(STEPS);
  expect(existsSync(manifest(home, STEPS))).toBe(true);
  const output = await expectDone(home.run('verify', 'demo'));
  expect(output).toContain(`re-computed demo@${STEPS}: adapter and optimizer state have the same bytes\n`);
  expect(output).toContain('demo is intact');
});

test('its copy goes on in another project, and ends with the same bytes', async () => {
  await expectDone(away.run('checkpoints', 'demo', 'pull', backup));
  expect(stepOf(away)).toBe(stoppedAfter);
  await expectDone(train(away).ended);
  expect(bytesOf(away)).toEqual(bytesOf(home));
  const steps = (await readSteps(new FileStore(away.path('store')), 'demo')).map(({ step }) => step);
  expect(steps).toEqual(Array.from({ length: STEPS }, (_, index) => index + 1));
  expect(stepOf(away)).toBe(STEPS);
  const commits = away.log('gpu-worker').filter(({ msg }) => msg === 'step committed');
  expect(commits.filter(({ found }) => found === false).map(({ step }) => step)).toEqual(steps.slice(stoppedAfter));
});
