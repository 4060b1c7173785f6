/** The engine where nobody names one: by the machine, and by what the run trains. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import type { EngineOverrides } from '../../../core/rules/engine-rules.ts';
import { defineConfig, type EngineConfig } from '../../../workers/config/config.ts';
import {
  ANY_USE,
  decideEngine,
  describeDecision,
  planEngine,
  type EngineUse,
} from '../../../workers/local-stack/decide-engine.ts';
import type { StackEvent } from '../../../workers/events.ts';
import { projectFolders } from '../../../workers/project/folders.ts';
import type { LocalStackOptions } from '../../../workers/local-stack/options.ts';
import { specifyStack } from '../../../workers/local-stack/specify.ts';
import { describeStack } from '../../../workers/local-stack/daemon/stack.ts';
import { fakePrograms, type FakePrograms } from '../install/fake-programs.ts';

const VLLM = { TEMPER_VLLM_PYTHON: '/vllm/python' };
const LORA = { rank: 16, alpha: 32, targetModules: null, dropout: 0, rslora: false, dora: false };

let programs: FakePrograms;
beforeEach(() => {
  programs = fakePrograms();
});

/** Notes each question that it is asked. */
function addGpu(): void {
  programs.add(
    'nvidia-smi',
    `fs.appendFileSync(__dirname + '/../asked', args[0] + '\\n'); console.log('NVIDIA H200');`,
  );
}

function questions(): string[] {
  const file = join(programs.folder, 'asked');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

type Input = Parameters<typeof defineConfig>[0];
interface Case {
  readonly engine?: NonNullable<Input>['engine'];
  readonly asked?: EngineOverrides;
  readonly use?: Partial<EngineUse>;
  readonly env?: NodeJS.ProcessEnv;
}

function decide({ engine = {}, asked = {}, use = {}, env = VLLM }: Case = {}) {
  const configured: EngineConfig = defineConfig({ engine }).engine;
  const place = { env: { ...programs.env, ...env }, cache: join(programs.folder, 'cache') };
  return decideEngine(configured, asked, { ...ANY_USE, ...use }, place);
}

const lineOf = async (of: Case = {}) => describeDecision(await decide(of));

it('the policies of a step are part of the decision, for the stack that is started with it', async () => {
  expect(await decide({ asked: { kind: 'vllm', device: 'cpu' }, use: { policies: 6 } })).toEqual({
    kind: 'vllm',
    reason: null,
    policies: 6,
  });
});

it('without a GPU the embedded engine samples, and nothing is said or asked', async () => {
  expect(await decide()).toEqual({ kind: 'embedded', reason: null });
  addGpu();
  expect(await decide({ asked: { device: 'cpu' } })).toEqual({ kind: 'embedded', reason: null });
  expect(await decide({ engine: { device: 'cpu', kind: 'vllm' } })).toEqual({ kind: 'vllm', reason: null });
  expect(await decide({ engine: { url: 'http://gpu-host:8000' } })).toEqual({ kind: 'embedded', reason: null });
  expect(questions()).toEqual([]);
  expect(await decide({ env: { ...VLLM, CUDA_VISIBLE_DEVICES: '' } })).toEqual({ kind: 'embedded', reason: null });
});

it.runIf(process.platform === 'linux')(
  'on a GPU vLLM samples where it is installed; the driver is asked once',
  async () => {
    addGpu();
    expect(await lineOf()).toBe('engine: vllm, because it samples on a GPU (NVIDIA H200) and vLLM is installed');
    expect(questions()).toEqual(['--query-gpu=name']);
    expect(await lineOf({ env: {} })).toBe(
      'engine: embedded, because vLLM is not installed: on one H200 the embedded engine sampled 491 tokens/s (shapes of Qwen2.5-7B, 64 requests at once), and published figures of vLLM are several times that; to install it, run: temper setup vllm',
    );
  },
);

it('a flag decides, then the configuration', async () => {
  addGpu();
  const engine = { kind: 'embedded' } as const;
  expect(await lineOf({ engine })).toBe('engine: embedded, as engine.kind in temporal.config.ts says');
  expect(await lineOf({ engine, asked: { kind: 'vllm' } })).toBe('engine: vllm, as --engine says');
});

it.runIf(process.platform === 'linux').each<[string, Case, string]>([
  ['4 bits', { asked: { loadIn4bit: true } }, 'vLLM cannot load base models in 4 bits as Temper does'],
  ['all weights', { use: { trained: [LORA, null] } }, 'vLLM takes only adapters, and all weights are trained'],
  ['DoRA', { use: { trained: [{ ...LORA, dora: true }] } }, 'vLLM loads no adapters with magnitudes (DoRA)'],
  [
    'a higher rank',
    { use: { trained: [{ ...LORA, rank: 128 }] } },
    'vLLM is started with room for adapters of rank 64, and this one has 128 (add --max-lora-rank to engine.vllm.args)',
  ],
  ['examples alone', { use: { samples: false } }, 'a run of supervised steps alone samples nothing'],
  [
    'a prefix cache',
    { engine: { prefixCacheBytes: 0 } },
    'engine.prefixCacheBytes in temporal.config.ts has no effect with vLLM',
  ],
])('what vLLM cannot do is left to the embedded engine: %s', async (_, of, obstacle) => {
  addGpu();
  expect(await decide(of)).toEqual({ kind: 'embedded', reason: `because ${obstacle}` });
});

it.runIf(process.platform === 'linux')('what it can do is not', async () => {
  addGpu();
  const args = ['--max-lora-rank=128'];
  const trained = [{ ...LORA, rank: 128, dora: false }];
  expect((await decide({ engine: { vllm: { args } }, use: { trained } })).kind).toBe('vllm');
});

it('a run goes on with what has sampled for it', async () => {
  const facts = { gpu: 'NVIDIA H200', obstacle: null, hasVllm: true };
  expect(planEngine({ ...facts, before: 'embedded' })).toEqual({
    kind: 'embedded',
    reason: 'because the run has been sampled with it so far (--engine changes that)',
  });
  expect(planEngine({ ...facts, before: 'vllm', hasVllm: false }).kind).toBe('vllm');
  const before = () => Promise.reject(new Error('asked'));
  expect((await decide({ use: { before } })).kind).toBe('embedded');
});

it.runIf(process.platform === 'linux')('the stack that a command starts samples with it, and says so', async () => {
  addGpu();
  const env = { ...programs.env, ...VLLM, TEMPORAL_ADDRESS: 'server:7233' };
  const started = async (asked: Partial<LocalStackOptions> = {}) => {
    const told: StackEvent[] = [];
    const install = { env, cache: programs.folder, onEvent: (event: StackEvent) => void told.push(event) };
    const commands = { gpuWorker: ['gpu-worker'], worker: ['worker'] };
    const options = { project: '/project', agentFile: null, models: {}, onEvent: install.onEvent, commands, ...asked };
    const folders = projectFolders('/project');
    const spec = await specifyStack({ folders, config: defineConfig(), install, options });
    return [describeStack(spec, { temporal: 1, ui: 2, engine: 3 }, null).engine.kind, told];
  };
  const message = 'engine: vllm, because it samples on a GPU (NVIDIA H200) and vLLM is installed';
  expect(await started()).toEqual(['vllm', [{ kind: 'notice', message }]]);
  expect(await started({ decided: { kind: 'embedded', reason: null } })).toEqual(['embedded', []]);
  expect((await started({ use: { ...ANY_USE, trained: [null] } }))[0]).toBe('embedded');
});
