/** `temper doctor model` prints what Python finds; what that is, gpu-worker/tests/process/test_plan.py checks. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ModelReport } from '../../workers/doctor/model-report.ts';
import { fakePython } from './fake-python.ts';
import { EngineSettings } from '../../core/contract/engine.ts';
import { ModelPlanInput } from '../../core/contract/programs.ts';
import { runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const GIB = 1024 ** 3;
const REPORT: ModelReport = {
  model: 'pocket',
  commit: null,
  architecture: 'Qwen2ForCausalLM',
  parameters: 494_032_768,
  contextWindow: 32_768,
  dtype: 'bfloat16',
  engine: 'embedded',
  refusal: null,
  templateGaps: ['it leaves out names of messages'],
  memory: {
    context: 4096,
    microBatchTokens: 16_384,
    longestRequest: 2048,
    requestsAtOnce: 0,
    devices: [
      {
        device: 'cpu',
        bytes: 8 * GIB,
        needed: 11 * GIB,
        fits: false,
        parts: [
          { phase: 'always', name: 'weights', bytes: GIB, reason: '494,032,768 parameters × 2 bytes' },
          { phase: 'serving', name: 'forward pass', bytes: 2 * GIB, reason: 'a layer' },
          { phase: 'training', name: 'micro-batch', bytes: 10 * GIB, reason: 'activations' },
        ],
      },
    ],
  },
};

async function doctor(flags: readonly string[], report: ModelReport, config: object = {}) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'chat.jinja'), 'template');
  const answer = `console.log(JSON.stringify({ ...${JSON.stringify(report)}, model: JSON.stringify(input) }));`;
  const env = fakePython(answer);
  writeFileSync(join(folder, 'temporal.config.ts'), `export default ${JSON.stringify(config)};\n`);
  const { stdout, ...result } = await runCli(folder, ['doctor', 'model', ...flags], { env });
  return { ...result, stdout: stdout.replaceAll(folder, 'PROJECT') };
}

/** The planner's input: its stand-in says it in the place of the model's name. */
function askedIn(stdout: string): ModelPlanInput {
  const { model } = JSON.parse(stdout) as ModelReport;
  return ModelPlanInput.parse(JSON.parse(model));
}

test('a model that does not fit is told with its parts and what to change, and ends with 1', async () => {
  const { exitCode, stdout } = await doctor(['pocket'], REPORT);
  expect(exitCode).toBe(1);
  expect(stdout).toContain('yes, served by embedded and trained');
  expect(stdout).toMatch(/chat template +it leaves out names of messages/);
  expect(stdout).toMatch(/micro-batch +10.00 GiB +training +activations/);
  expect(stdout).toMatch(/worst moment +11.00 GiB +does not fit: 8.00 GiB in all/);
  expect(stdout).toContain('holds a request of 2,048 tokens at most; raise engine.kvCacheBytes');
  expect(stdout).toContain('to make it fit: pass a smaller --micro-batch-tokens (now 16,384)');
  const longer = { ...REPORT, memory: { ...REPORT.memory!, context: 16_384 } };
  expect((await doctor(['pocket'], longer)).stdout).toContain('to make it fit: pass a smaller --context');
});

/** The default settings of a run. */
const LORA = { rank: 16, alpha: 32, targetModules: null, dropout: 0, rslora: false, dora: false };

test('engine, device, type and length of conversations are those of the flags; JSON has it all', async () => {
  const [device] = REPORT.memory!.devices;
  const memory = { ...REPORT.memory!, devices: [{ ...device!, fits: true }] };
  const flags = ['pocket', '--engine', 'vllm', '--device', 'cuda', '--dtype', 'float32', '--context', '99'];
  const others = ['--chat-template', 'chat.jinja', '--json'];
  const { exitCode, stdout } = await doctor([...flags, ...others], { ...REPORT, memory });
  expect([exitCode, (JSON.parse(stdout) as ModelReport).memory]).toEqual([0, memory]);
  expect(askedIn(stdout)).toEqual({
    model: 'pocket',
    source: null,
    chatTemplate: 'PROJECT/chat.jinja',
    context: 99,
    lora: LORA,
    optimizer: 'adamw',
    microBatchTokens: 16_384,
    trainsEntropy: false,
    compared: 0,
    fit: false,
    engine: EngineSettings.parse({ kind: 'vllm', device: 'cuda', dtype: 'float32' }),
  });
});

test('a base model in 4 bits is planned so; what it cannot go with is refused', async () => {
  const plan = async (flags: readonly string[], config: object = {}) =>
    askedIn((await doctor(['pocket', ...flags, '--json'], REPORT, config)).stdout).engine.loadIn4bit;
  expect(await plan(['--load-in-4bit'])).toBe(true);
  expect(await plan([], { engine: { loadIn4bit: true } })).toBe(true);
  expect(await plan([])).toBe(false);
  const refusal = async (flags: readonly string[], config: object = {}) => {
    const { exitCode, stderr } = await doctor(['pocket', '--load-in-4bit', ...flags], REPORT, config);
    expect(exitCode).toBe(2);
    return stderr;
  };
  expect(await refusal(['--engine', 'vllm'])).toContain('must come with the embedded engine');
  expect(await refusal(['--full-fine-tuning'])).toContain('must come with a LoRA adapter to train');
  const sharded = { engine: { devices: 2, shardBaseModel: true } };
  expect(await refusal([], sharded)).toContain('must come with a whole base model on each device');
});

test('several devices are planned by flag; a base model has no parts on a single one', async () => {
  const flags = ['pocket', '--devices', '2', '--shard-base-model', '--engine', 'vllm', '--json'];
  const { stdout } = await doctor(flags, REPORT);
  expect(askedIn(stdout).engine).toMatchObject({ devices: 2, shardBaseModel: true });
  const alone = await doctor(['pocket', '--shard-base-model'], REPORT);
  expect([alone.exitCode, alone.stderr]).toEqual([
    2,
    expect.stringContaining('must come with several --devices, got 1'),
  ]);
});

test('a vLLM server elsewhere is named, because it takes no memory here', async () => {
  const vllm = { url: 'http://gpu-host:8000', adapters: { folder: '/mnt/adapters' } };
  const { stdout } = await doctor(['pocket', '--json'], REPORT, { engine: { kind: 'vllm', vllm } });
  expect(askedIn(stdout).engine.vllm).toMatchObject(vllm);
});

test('what would be trained is what flags say, then what the project gives to every run', async () => {
  const train = { 'lora-rank': 8, 'lora-target-modules': 'q_proj, v_proj', steps: 7, 'chat-template': 'chat.jinja' };
  const { stdout } = await doctor(['pocket', '--lora-rank', '64', '--json'], REPORT, { train });
  expect(askedIn(stdout)).toMatchObject({
    chatTemplate: 'PROJECT/chat.jinja',
    lora: { rank: 64, targetModules: ['q_proj', 'v_proj'] },
    microBatchTokens: 16_384,
  });
  const others = { 'lora-layers': '0-1,5', 'lora-dora': true, 'lora-dropout': 0.1 };
  const more = await doctor(['pocket', '--entropy-coefficient', '0.01', '--json'], REPORT, { train: others });
  expect(askedIn(more.stdout)).toMatchObject({
    lora: { rank: 16, layers: [0, 1, 5], dora: true, dropout: 0.1 },
    trainsEntropy: true,
  });
  const full = await doctor(['pocket', '--full-fine-tuning', '--optimizer', 'adamw_8bit', '--json'], REPORT);
  expect(askedIn(full.stdout)).toMatchObject({ lora: null, optimizer: 'adamw_8bit' });
  const usual = await doctor(['pocket', '--optimizer', 'adamw', '--json'], REPORT);
  expect(askedIn(usual.stdout)).toMatchObject({ optimizer: 'adamw' });
});

test('a flag of a run is held to the same rule as in temper train', async () => {
  const { exitCode, stderr } = await doctor(['pocket', '--micro-batch-tokens', '0'], REPORT);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--micro-batch-tokens must be at least 1, got 0;')]);
});

test('a model that cannot be used ends with 1, and says why', async () => {
  const { exitCode, stdout } = await doctor(['pocket'], { ...REPORT, refusal: 'a mixture of experts', memory: null });
  expect([exitCode, stdout]).toEqual([1, expect.stringContaining('no: a mixture of experts')]);
});
