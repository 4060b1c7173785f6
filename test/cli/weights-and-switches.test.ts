/** Options of a run that go with its weights, or that it would inherit: what is planned, refused and switched off. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { flagText } from '../../cli/planning/project-flags.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import { configDetails } from '../../core/reports/describe-config.ts';
import type { RunOptions } from '../../core/rules/run-defaults.ts';
import { RecomputeInput } from '../../core/contract/programs.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { defineConfig, type TemperConfig } from '../../workers/config/config.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePython } from './fake-python.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf, runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  store = await openStore(join(project, '.temper', 'store'));
});

const FULL = '--full-fine-tuning';
const NEW = ['agent.ts', '--run', 'new', '--base-model', 'pocket'];
const refusal = (...flags: string[]) => complaintIn(project, ['train', ...NEW, ...flags]);
const planned = async (...words: string[]) =>
  (await planTrain(contextOf(trainCommand, project, [...NEW, ...words]), 'estimate')).config;
const forking = (from: string, ...words: string[]) =>
  complaintIn(project, ['train', 'agent.ts', '--from', from, ...words, '--run', 'new']);
const scheduling = (...words: string[]) =>
  complaintIn(project, [
    'schedule',
    'create',
    'agent.ts',
    '--base-model',
    'pocket',
    '--name',
    'n',
    '--every',
    '1d',
    ...words,
  ]);
const configure = (config: object) =>
  writeFile(join(project, 'temporal.config.ts'), `export default ${JSON.stringify(config)};\n`);

describe('all weights', () => {
  beforeEach(async () => {
    await makeRun(store, { run: 'full', train: { lora: null } });
    await makeRun(store, { run: 'adapted' });
  });

  test('the run has no LoRA, and a learning rate of its own', async () => {
    const config = await planned(FULL);
    expect([config.train.lora, config.learningRate]).toEqual([null, 5e-6]);
    expect(configDetails(config)).toContain('learning rate 0.000005 (constant), full fine-tuning, seed 1');
    const chat = (content: string) =>
      JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
    await writeFile(join(project, 'chats.jsonl'), ['a', 'b', 'c'].map(chat).join('\n'));
    const words = ['chats.jsonl', '--base-model', 'pocket', FULL, '--learning-rate', '0.5'];
    const supervised = (await planTrain(contextOf(trainCommand, project, words), 'estimate')).config;
    expect([supervised.train.lora, supervised.learningRate]).toEqual([null, 0.5]);
    // A fork inherits it.
    const fork = await planTrain(
      contextOf(trainCommand, project, ['agent.ts', '--from', 'full@2', '--run', 'new']),
      'estimate',
    );
    expect(fork.config.train.lora).toBeNull();
  });

  test('what needs an adapter is refused with the reason', async () => {
    expect(await refusal(FULL, '--lora-dropout', '0.1')).toContain(
      '--lora-dropout and --full-fine-tuning exclude each',
    );
    expect(await refusal(FULL, '--lora-dora')).toContain('--lora-dora and --full-fine-tuning exclude each');
    expect(await refusal(FULL, '--devices', '2', '--shard-base-model')).toContain('only frozen weights can be sharded');
    expect(await refusal(FULL, '--load-in-4bit')).toContain('because weights in 4 bits are frozen');
    expect(await forking('full@2', '--load-in-4bit')).toContain('weights in 4 bits are frozen');
    expect(await refusal(FULL, '--engine', 'vllm')).toContain('--full-fine-tuning needs the embedded engine: vLLM');
    await configure({ train: { 'lora-rank': 4 } });
    expect(await refusal(FULL)).toContain('--lora-rank and --full-fine-tuning exclude each other');
    await configure({ engine: { loadIn4bit: true } });
    expect(await refusal(FULL)).toContain('got --full-fine-tuning');
    expect(await scheduling(FULL)).toContain('weights in 4 bits are frozen');
  });

  test('a run, its forks and its reference train the same', async () => {
    const again = 'train agent.ts --base-model pocket --groups-per-step 2 --group-size 2 --steps 3'.split(' ');
    expect(await complaintIn(project, [...again, '--run', 'adapted', FULL, '--learning-rate', '5e-5'])).toContain(
      'the run adapted exists with another configuration (recorded → requested): --full-fine-tuning: "a LoRA adapter" → "all weights"',
    );
    expect(await forking('full@2', '--lora-rank', '8')).toContain('--full-fine-tuning must stay on');
    expect(await forking('adapted@2', FULL)).toContain('--full-fine-tuning must stay off');
    const kl = ['--kl-coefficient', '0.1', '--kl-reference'];
    expect(await refusal(FULL, ...kl, 'adapted@2')).toContain(
      'adapted@2 has a LoRA adapter, the run trains all weights',
    );
    expect(await refusal(...kl, 'full@2')).toContain('full@2 has all weights, the run trains a LoRA adapter');
  });

  test('an export is the whole model', async () => {
    const exporting = (...words: string[]) => ['export', 'full@2', '--to', 'out', ...words];
    expect(await complaintIn(project, exporting('--format', 'peft'))).toContain('peft needs an adapter, but full@2');
    const env = fakePython(`console.log('{"revision":null,"kept":0.9312}');`);
    const { exitCode, stdout, stderr } = await runCli(project, exporting('--dtype', 'bfloat16'), { env });
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain('full@2: all weights in bfloat16, 1 file');
    const card = readFileSync(join(project, 'out', 'README.md'), 'utf8');
    expect(card).toContain('All of its weights were trained.');
    expect(card).toContain('| training | full fine-tuning |');
    expect(card).toContain('bfloat16; 93.120 % of what training changes is left after rounding');
    expect(card).toContain('1. run full: the weights of the base model');
    expect(card).not.toMatch(/LoRA|PEFT|adapter/);
  });
});

describe('weights in 4 bits', () => {
  const FLAG = '--load-in-4bit';

  test('what computes with other weights is refused before anything is started', async () => {
    expect(await refusal(FLAG, '--engine', 'vllm')).toContain('must come with the embedded engine');
    expect(await refusal(FLAG, '--devices', '2', '--shard-base-model')).toContain(
      'weights in 4 bits cannot be sharded',
    );
    await configure({ engine: { loadIn4bit: true } });
    expect(await refusal('--engine', 'vllm')).toContain('vLLM reads the weights of the model itself');
    await configure({ engine: { kind: 'vllm' } });
    expect(await refusal(FLAG)).toContain('got vllm; choose the embedded engine (--engine, engine.kind)');
    await configure({ engine: { loadIn4bit: true, url: 'http://gpu:1' } });
    expect(await refusal()).toContain('engine.loadIn4bit in temporal.config.ts has no effect with engine.url');
  });

  test('the run is the same with and without it: what it trains on is known by the hash of the weights', async () => {
    expect(await planned(FLAG)).toEqual(await planned());
  });

  test('a step is recomputed with the weights that it was trained with', async () => {
    await makeRun(store, { run: 'packed', steps: 1, platform: { quantization: 'nf4' } });
    await makeRun(store, { run: 'plain', steps: 1 });
    const file = join(temporaryFolder(), 'input');
    // Keys of hosted models are not passed on.
    const program = `fs.writeFileSync(${JSON.stringify(file)}, JSON.stringify(input)); console.log(process.env.OPENAI_API_KEY ?? 'no more'); process.exit(1);`;
    const env = { ...fakePython(program), OPENAI_API_KEY: 'sk-1' };
    const engineOf = async (run: string) => {
      const { stderr } = await runCli(project, ['verify', run], { env });
      expect(stderr).toContain('could not be re-computed: no more');
      const { settings } = RecomputeInput.parse(JSON.parse(readFileSync(file, 'utf8')));
      const { threads, loadIn4bit, shardBaseModel } = settings.engine;
      return { threads, loadIn4bit, shardBaseModel };
    };
    const whole = { threads: 2, loadIn4bit: false, shardBaseModel: false };
    expect(await engineOf('packed')).toEqual({ ...whole, loadIn4bit: true });
    expect(await engineOf('plain')).toEqual(whole);
    // Devices that hold parts of the base model are another matter.
    await configure({ engine: { devices: 2, shardBaseModel: true } });
    expect(await engineOf('packed')).toEqual({ ...whole, loadIn4bit: true });
    expect(await engineOf('plain')).toEqual({ ...whole, shardBaseModel: true });
  });
});

describe('a correction where the engine computes what the trainer does', () => {
  const MASK = ['--correction', 'token-mask'];
  const masking = (...flags: string[]) => refusal(...MASK, ...flags);

  test('with the embedded engine in float32 it has no effect', async () => {
    expect(await masking('--dtype', 'float32')).toContain(
      '--correction token-mask has no effect with the embedded engine',
    );
    expect(await masking('--device', 'cpu', '--passes', '2')).toContain('--correction token-mask has no effect');
    const withoutGpu = { env: { CUDA_VISIBLE_DEVICES: '' } };
    expect(await complaintIn(project, ['train', ...NEW, ...MASK], withoutGpu)).toContain(
      '--correction token-mask has no effect',
    );
    await configure({ engine: { dtype: 'float32' } });
    expect(await masking()).toContain('--correction token-mask has no effect');
    expect(await scheduling(...MASK)).toContain('--correction token-mask has no effect');
  });

  test.each([
    [['--device', 'cuda']],
    [['--dtype', 'bfloat16']],
    [['--device', 'cpu', '--dtype', 'bfloat16']],
    [['--device', 'cpu', '--engine', 'vllm']],
    [['--device', 'cpu', '--max-staleness', '1']],
  ])('where sampler and trainer may differ, it is taken: %j', async (flags) => {
    expect((await planned(...MASK, ...flags)).train.correction).toBe('token-mask');
  });

  test('of a GPU worker elsewhere nothing is known', async () => {
    await configure({ engine: { url: 'http://gpu-host:8017' } });
    expect((await planned(...MASK)).train.correction).toBe('token-mask');
  });

  test('a fork that inherits it is refused, and a run that exists goes on', async () => {
    await makeRun(store, { run: 'old', train: { correction: 'token-mask', correctionCap: 2 } });
    expect(await forking('old@2', '--device', 'cpu')).toContain('--correction token-mask has no effect');
    await makeRun(store, { run: 'again', train: { correction: 'token-mask', correctionCap: 2 } });
    const same = ['--run', 'again', '--groups-per-step', '2', '--group-size', '2', '--steps', '3', '--device', 'cpu'];
    expect((await planned(...MASK, ...same)).run).toBe('again');
  });
});

describe('what would be inherited', () => {
  /** Weights with which a correction has an effect. */
  const BFLOAT16 = ['--dtype', 'bfloat16'];

  async function forked(train: RunOptions['train'], ...flags: string[]) {
    await makeRun(store, { train });
    const words = ['agent.ts', '--from', 'demo@2', '--run', 'new', ...BFLOAT16, ...flags];
    return (await planTrain(contextOf(trainCommand, project, words), 'estimate')).config;
  }

  test('a fork drops what its parent has', async () => {
    const parent = { correction: 'geometric', leaveOneOut: true, passes: 2, loss: { name: 'ppo' } } as const;
    const flags = ['--correction', 'none', '--no-leave-one-out', '--dual-clip', 'none'];
    expect((await forked(parent)).train).toMatchObject({ ...parent, correctionCap: 1.01, loss: { dualClip: 3 } });
    const { train } = await forked(parent, ...flags);
    expect(train).toMatchObject({ leaveOneOut: false, correction: 'none', loss: { name: 'ppo', dualClip: null } });
    expect(train).not.toHaveProperty('correctionCap');
  });

  /** The plan of the run that `train` of temporal.config.ts and flags make. */
  const configured = (train: TemperConfig['train'], ...flags: string[]) =>
    planned(...flagText(defineConfig({ train })), ...BFLOAT16, ...flags);

  test.each<[TemperConfig['train'], string[]]>([
    [{ 'leave-one-out': true }, ['--no-leave-one-out']],
    [{ 'lora-rslora': true, 'lora-dora': true }, ['--no-lora-rslora', '--no-lora-dora']],
    [{ 'full-fine-tuning': true }, ['--no-full-fine-tuning']],
    [{ correction: 'token-mask' }, ['--correction', 'none']],
    [{ 'learning-rate-schedule': 'cosine', 'learning-rate-restarts': 2 }, ['--learning-rate-restarts', '0']],
  ])('a flag wins over train of temporal.config.ts: %j, %j', async (train, flags) => {
    const without = Object.fromEntries(Object.entries(train).filter(([name]) => name === 'learning-rate-schedule'));
    const given = await configured(train);
    const plain = await configured(without);
    expect(given).not.toEqual(plain);
    expect(await configured(train, ...flags)).toEqual(plain);
  });

  test('a clip of ppo is switched off for other losses, too', async () => {
    const train = { passes: 2, loss: 'ppo', 'dual-clip': 4 };
    expect((await configured(train, '--dual-clip', 'none')).train.loss).toMatchObject({ name: 'ppo', dualClip: null });
    const { loss } = (await configured(train, '--loss', 'gspo', '--dual-clip', 'none')).train;
    expect(loss).toEqual({ name: 'gspo', epsilonLow: 3e-4, epsilonHigh: 4e-4 });
  });

  test('the later one of both counts, and a switch that nothing else sets has no opposite', async () => {
    const both = ['--leave-one-out', '--no-leave-one-out'];
    expect((await configured({}, ...both)).train.leaveOneOut).toBe(false);
    expect((await configured({}, ...both.toReversed())).train.leaveOneOut).toBe(true);
    expect(await refusal('--no-load-in-4bit')).toContain('unknown flag --no-load-in-4bit');
    expect(await refusal('--no-leave-one-out=yes')).toContain('--no-leave-one-out takes no value');
  });

  test('what a run continues stays: its weights and its own shape', async () => {
    await makeRun(store, { run: 'full', train: { lora: null } });
    await makeRun(store, { run: 'scaled', train: { lora: { dora: true } } });
    expect(await forking('full@2', '--no-full-fine-tuning')).toContain('--full-fine-tuning must stay on');
    expect(await forking('scaled@2', '--no-lora-dora')).toContain('--lora-dora must stay');
  });
});
