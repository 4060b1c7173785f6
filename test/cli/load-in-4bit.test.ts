/** Base models in 4 bits: what `temper train` and `schedule create` refuse, and what `temper verify` passes on. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { planTrain } from '../../cli/train/plan-train.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePrograms } from '../workers/install/fake-programs.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf, runCli, settingsIn } from './run-cli.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = await temporaryProject();
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  store = await openStore(join(project, '.temper', 'store'));
});

const FLAG = '--load-in-4bit';
const NEW = ['agent.ts', '--base-model', 'pocket'];
const train = (...flags: string[]) => complaintIn(project, ['train', ...NEW, ...flags]);
const configure = (engine: object) =>
  writeFile(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);

test('what computes with other weights is refused before anything is started', async () => {
  expect(await train(FLAG, '--engine', 'vllm')).toContain('must come with the embedded engine');
  expect(await train(FLAG, '--devices', '2', '--shard-base-model')).toContain('weights in 4 bits cannot be sharded');
  expect(await train(FLAG, '--full-fine-tuning')).toContain('because weights in 4 bits are frozen');
  await configure({ loadIn4bit: true });
  expect(await train('--engine', 'vllm')).toContain('vLLM reads the weights of the model itself');
  const schedule = ['schedule', 'create', ...NEW, '--name', 'nightly', '--every', '1d'];
  expect(await complaintIn(project, [...schedule, '--full-fine-tuning'])).toContain('weights in 4 bits are frozen');
  await configure({ kind: 'vllm' });
  expect(await train(FLAG)).toContain('got vllm; choose the embedded engine (--engine, engine.kind)');
  await configure({ loadIn4bit: true, url: 'http://gpu:1' });
  expect(await train()).toContain('engine.loadIn4bit in temporal.config.ts has no effect with engine.url');
});

test('the run is the same with and without it: what it trains on is known by the hash of the weights', async () => {
  const [plain, packed] = await Promise.all(
    [[], [FLAG]].map((flags) => planTrain(contextOf(trainCommand, project, [...NEW, ...flags]))),
  );
  expect(packed!.config).toEqual(plain!.config);
});

test('a step is recomputed with the weights that it was trained with', async () => {
  await makeRun(store, { run: 'packed', steps: 1, platform: { quantization: 'nf4' } });
  await makeRun(store, { run: 'plain', steps: 1 });
  const programs = fakePrograms();
  onTestFinished(() => programs.remove());
  const file = join(programs.folder, 'args');
  programs.add(
    'python',
    `if (args[0] === '-c') console.log('missing:');
    else { fs.writeFileSync(${JSON.stringify(file)}, JSON.stringify(args)); console.log(process.env.OPENAI_API_KEY ?? 'no more'); process.exit(1); }`,
  );
  // Keys of hosted models are not passed on.
  const env = { ...programs.env, TEMPER_PYTHON: join(programs.folder, 'bin', 'python'), OPENAI_API_KEY: 'sk-1' };
  const engineOf = async (run: string) => {
    const { stderr } = await runCli(project, ['verify', run], { env });
    expect(stderr).toContain('could not be re-computed: no more');
    const { threads, loadIn4bit, shardBaseModel } = settingsIn(
      JSON.parse(readFileSync(file, 'utf8')) as string[],
    ).engine;
    return { threads, loadIn4bit, shardBaseModel };
  };
  const whole = { threads: 2, loadIn4bit: false, shardBaseModel: false };
  expect(await engineOf('packed')).toEqual({ ...whole, loadIn4bit: true });
  expect(await engineOf('plain')).toEqual(whole);
  // Devices that hold parts of the base model are another matter.
  await configure({ devices: 2, shardBaseModel: true });
  expect(await engineOf('packed')).toEqual({ ...whole, loadIn4bit: true });
  expect(await engineOf('plain')).toEqual({ ...whole, shardBaseModel: true });
});
