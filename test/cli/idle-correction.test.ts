/** A correction where the engine computes what the trainer does: refused where that is known before the run begins. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { planTrain } from '../../cli/train/plan-train.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf } from './run-cli.ts';

let project: string;

beforeEach(async () => {
  project = await temporaryProject();
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
});

const NEW = ['agent.ts', '--base-model', 'pocket', '--correction', 'token-mask'];
const train = (...flags: string[]) => complaintIn(project, ['train', ...NEW, ...flags]);
const plan = (...flags: string[]) => planTrain(contextOf(trainCommand, project, [...NEW, ...flags]));
const configure = (engine: object) =>
  writeFile(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);

test('with the embedded engine in float32 it has no effect', async () => {
  expect(await train('--dtype', 'float32')).toContain('--correction token-mask has no effect with the embedded engine');
  expect(await train('--device', 'cpu', '--passes', '2')).toContain('--correction token-mask has no effect');
  const withoutGpu = { env: { CUDA_VISIBLE_DEVICES: '' } };
  expect(await complaintIn(project, ['train', ...NEW], withoutGpu)).toContain('--correction token-mask has no effect');
  await configure({ dtype: 'float32' });
  expect(await train()).toContain('--correction token-mask has no effect');
  const schedule = ['schedule', 'create', ...NEW, '--name', 'nightly', '--every', '1d'];
  expect(await complaintIn(project, schedule)).toContain('--correction token-mask has no effect');
});

test.each([
  [['--device', 'cuda']],
  [['--dtype', 'bfloat16']],
  [['--device', 'cpu', '--dtype', 'bfloat16']],
  [['--device', 'cpu', '--engine', 'vllm']],
  [['--device', 'cpu', '--max-staleness', '1']],
])('where sampler and trainer may differ, it is taken: %j', async (flags) => {
  expect((await plan(...flags)).config.train.correction).toBe('token-mask');
});

test('of a GPU worker elsewhere nothing is known', async () => {
  await configure({ url: 'http://gpu-host:8017' });
  expect((await plan()).config.train.correction).toBe('token-mask');
});

test('a fork that inherits it is refused, and a run that exists goes on', async () => {
  const store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { run: 'old', train: { correction: 'token-mask', correctionCap: 2 } });
  const words = ['old@2', 'agent.ts', '--run', 'new', '--device', 'cpu'];
  expect(await complaintIn(project, ['fork', ...words])).toContain('--correction token-mask has no effect');
  await makeRun(store, { run: 'again', train: { correction: 'token-mask', correctionCap: 2 } });
  const same = ['--run', 'again', '--groups-per-step', '2', '--group-size', '2', '--steps', '3', '--device', 'cpu'];
  expect((await plan(...same)).existing).not.toBeNull();
});
