/** Every flag and field of temporal.config.ts is asked for its effect: one without any fails here. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { evalCommand } from '../../cli/eval/command.ts';
import { planEval } from '../../cli/eval/plan-eval.ts';
import { scenariosCommand } from '../../cli/scenarios/command.ts';
import { planScenarios } from '../../cli/scenarios/plan-scenarios.ts';
import { scheduleCreateCommand } from '../../cli/schedule/command.ts';
import { planSchedule } from '../../cli/schedule/plan-schedule.ts';
import { forkCommand } from '../../cli/fork/command.ts';
import { planFork } from '../../cli/fork/plan-fork.ts';
import { autoCommand } from '../../cli/auto/command.ts';
import { openAuto } from '../../cli/auto/open-auto.ts';
import { flagText } from '../../cli/planning/project-flags.ts';
import { planTrain } from '../../cli/train/plan-train.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { sftCommand } from '../../cli/sft/command.ts';
import { planSft } from '../../cli/sft/plan-sft.ts';
import { tryCommand } from '../../cli/try/command.ts';
import { planTry } from '../../cli/try/plan-try.ts';
import { RUN_FLAG_ROWS, RUN_FLAGS } from '../../cli/planning/run-flag-table.ts';
import { RunConfig } from '../../core/contract.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { defineConfig, TemperConfigSchema } from '../../workers/config/config.ts';
import { projectFolders } from '../../workers/project/folders.ts';
import { absoluteModels } from '../../workers/base-models/known-models.ts';
import { specifyStack } from '../../workers/local-stack/specify.ts';
import { activityOptions, workflowOptions } from '../../workers/worker/worker.ts';
import { textOf } from '../by-test.ts';
import { fieldOf, leavesOf, setField } from '../schema-leaves.ts';
import { makeRun } from '../store/records/made-run.ts';

import { write, writeAgent } from './agents.ts';
import { findPrice } from '../../core/prices.ts';
import { configuredMetrics } from '../../workers/metrics/configured-metrics.ts';
import { namesOfTargets } from '../../workers/config/targets.ts';
import { FLAGS, TRAIN } from './flag-probes.ts';
import { temporaryFolder } from './fixture-store.ts';
import { contextOf, runCli } from './run-cli.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const source = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** Made once: what is planned changes nothing of it. */
const project = mkdtempSync(join(tmpdir(), 'temper-options-'));
beforeAll(() => fill(project));
afterAll(() => rmSync(project, { recursive: true }));

function chatOf(content: string): string {
  return JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
}

async function fill(folder: string): Promise<Store> {
  await write(join(folder, 'package.json'), '{}');
  await write(join(folder, 'chat.jinja'), '{{ messages[0].content }}');
  await write(join(folder, 'chats.jsonl'), Array.from({ length: 40 }, (_, index) => chatOf(`${index}`)).join('\n'));
  await writeAgent(folder, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  const store = await openStore(join(folder, '.temper', 'store'));
  await makeRun(store, { steps: 5, evals: { 2: 0.75 } });
  return store;
}

const ENV = { OPENAI_API_KEY: 'x', MY_KEY: 'secret' };
/** The context of a line `train …`. */
const trainLine = (line: string, folder = project) => contextOf(trainCommand, folder, line.split(' ').slice(1), ENV);

/** Plans that commands make of the words after their names, before anything is started. */
const PLANS: Readonly<Record<string, (words: readonly string[]) => Promise<object>>> = {
  auto: async (words) => {
    const { environment: _, ...opened } = await openAuto(contextOf(autoCommand, project, words, ENV));
    return opened;
  },
  train: (words) => planTrain(contextOf(trainCommand, project, words, ENV)),
  sft: (words) => planSft(contextOf(sftCommand, project, words, ENV)),
  fork: (words) => planFork(contextOf(forkCommand, project, words, ENV)),
  eval: (words) => planEval(contextOf(evalCommand, project, words, ENV)),
  scenarios: (words) => planScenarios(contextOf(scenariosCommand, project, words, ENV)),
  try: (words) => planTry(contextOf(tryCommand, project, words, ENV)),
  'schedule create': (words) => planSchedule(contextOf(scheduleCreateCommand, project, words, ENV)),
};

/** A value that is not the default, with what else it needs. */
const RUN_FLAG_VALUES: Readonly<Record<string, string>> = {
  'base-model': 'pocket-tools',
  'learning-rate-schedule': 'linear',
  'final-learning-rate-share': '0.5 --learning-rate-schedule linear',
  'learning-rate-restarts': '2 --learning-rate-schedule cosine',
  'lora-target-modules': 'q_proj,v_proj',
  'lora-layers': '0-1,3',
  'chat-template': 'chat.jinja',
  'chat-template-kwargs': '{"enable_thinking":false}',
  loss: 'ppo --passes 2',
  'dual-clip': '4 --loss ppo --passes 2',
  'max-shift': '0.1 --loss dppo --passes 2',
  'log-ratio-penalty': '0.1 --loss dppo --passes 2',
  'tau-positive': '2 --loss sapo --passes 2',
  'tau-negative': '2 --loss sapo --passes 2',
  'epsilon-low': '0.5 --passes 2',
  'epsilon-high': '0.5 --passes 2',
  reduction: 'attempt',
  correction: 'token-mask',
  'kl-reference': 'demo@2 --kl-coefficient 0.1',
  'kl-as': 'reward --kl-coefficient 0.1',
  'kl-estimator': 'k3',
  'overlong-penalty': '2 --overlong-buffer 8',
  'correction-cap': '3 --correction token-mask --max-staleness 1',
  'reduction-tokens': '100 --reduction constant',
  'advantage-scale': 'group-std',
  'advantage-baseline': 'rae',
  optimizer: 'adamw_8bit',
  packing: 'rows',
  truncated: 'keep',
  judge: 'openai/gpt-5',
  'max-judge-usd': '3',
  'max-cost-usd': '3 --gpu-usd-per-hour 1',
};

const isShared = new Set(Object.keys(RUN_FLAGS));
const SHARING = new Set(['train', 'fork', 'schedule create', 'estimate']);
const ALL = COMMANDS.flatMap((command) => [command, ...(command.actions ?? [])]);
const OWN_FLAGS = ALL.flatMap(({ name, flags }) =>
  Object.keys(flags)
    .filter((flag) => !SHARING.has(name) || !isShared.has(flag))
    .filter((flag) => name !== 'estimate' || !Object.hasOwn(trainCommand.flags, flag))
    .map((flag) => `${name} --${flag}`),
);

/** Lines that many flags are compared with are planned once. */
const outcomes = new Map<string, Promise<unknown>>();

function outcomeOnce(line: string): Promise<unknown> {
  const found = outcomes.get(line) ?? outcome(line);
  outcomes.set(line, found);
  return found;
}

async function outcome(line: string): Promise<unknown> {
  const args = line.split(' ').map((word) => word.replaceAll('~', ' '));
  const name = Object.keys(PLANS).find((plan) => line.startsWith(`${plan} `));
  const fresh = await temporaryFolder();
  if (name === undefined) {
    execFileSync('cp', ['-r', `${project}/.`, fresh]);
    const { exitCode, stdout, stderr } = await runCli(fresh, args);
    return { exitCode, said: `${stdout}\n${stderr}`.replaceAll(fresh, 'PROJECT') };
  }
  try {
    const { store: _, ...plan } = (await PLANS[name]!(args.slice(name.split(' ').length))) as object & {
      store?: Store;
    };
    return plan;
  } catch (error) {
    return String(error);
  }
}

describe('flags', () => {
  test('each has a probe, and each probe a flag', () => {
    expect(Object.keys(FLAGS).toSorted()).toEqual(OWN_FLAGS.toSorted());
  });

  test.each(OWN_FLAGS)('%s has an effect, or is refused by name', async (flag) => {
    const probe = FLAGS[flag]!;
    if ('title' in probe) {
      const name = flag.slice(flag.indexOf('--') + 2);
      expect(textOf(probe)).toMatch(new RegExp(String.raw`\b${name.replaceAll('-', '-?')}\b`, 'i'));
      return;
    }
    const [without, given] = [await outcomeOnce(probe[0]), await outcome(probe[1])];
    expect(given).not.toEqual(without);
    if (JSON.stringify(given).includes('unknown flag')) expect.unreachable(`${flag} is no flag`);
  });

  test.each([...SHARING])('%s takes every flag of a run', (name) => {
    const { flags } = ALL.find((command) => command.name === name)!;
    expect([...isShared].filter((flag) => !Object.hasOwn(flags, flag))).toEqual([]);
  });
});

describe('the configuration of a run', () => {
  let before: RunConfig;
  beforeAll(async () => {
    ({ config: before } = await planTrain(trainLine(TRAIN)));
  });

  test.each(RUN_FLAG_ROWS.map(([flag, { path, kind }]) => ({ flag, path, kind })))(
    '--$flag changes $path, or is refused by name',
    async ({ flag, path, kind }) => {
      const given = RUN_FLAG_VALUES[flag] ?? (kind === 'boolean' ? '' : kind === 'integer' ? '3' : '0.125');
      const line = flag === 'base-model' ? 'train agent.ts' : TRAIN;
      const after = await planTrain(trainLine(`${line} --${flag} ${given}`.trim())).then(
        ({ config }) => fieldOf(config, path),
        (error: Error) => error.message,
      );
      expect(after).not.toEqual(fieldOf(before, path));
      if (typeof after === 'string' && after.includes(' ')) expect(after).toContain(`--${flag}`);
    },
  );

  const paths = leavesOf(RunConfig).map(({ path }) => path);

  test.each(paths)('%s is read by what plays, judges, trains or plans', (path) => {
    const name = path.split('.').at(-1)!;
    const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const read = new RegExp(String.raw`\b(${name}|${snake})\b`);
    expect(READERS.filter((file) => read.test(source(file)))).not.toEqual([]);
  });
});

/** Files where a field of a run's configuration can have an effect: not those that define, default or only copy it. */
const LIST = 'ls-files -co --exclude-standard core workflows activities play sdk gpu-worker/temper_gpu';
const READERS = execFileSync('git', LIST.split(' '), { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter(
    (file) =>
      /\.(ts|py)$/.test(file) && !/contract|run-defaults|schema-defaults|describe-config|options\.ts$/.test(file),
  );

describe('temporal.config.ts', () => {
  const EXTERNAL = {
    engine: { kind: 'vllm', vllm: { url: 'http://gpu-host:8000', adapters: { folder: '/mnt/adapters' } } },
  };
  /** Values that are not the defaults, with what else they need. */
  const FIELDS: Readonly<Record<string, readonly [value: unknown, besides?: object]>> = {
    store: ['s3://bucket/here'],
    'queues.workflows': ['other'],
    'queues.gpu': ['h200'],
    'capacity.workflowTasks': [3],
    'capacity.cachedWorkflows': [7],
    'capacity.rollouts': [9],
    'engine.url': ['http://gpu-host:8000'],
    'engine.keyVariable': ['MY_KEY', { engine: { url: 'http://gpu-host:8000' } }],
    'engine.threads': [7],
    'engine.device': ['cuda:1'],
    'engine.dtype': ['bfloat16'],
    'engine.devices': [2],
    'engine.shardBaseModel': [true, { engine: { devices: 2 } }],
    'engine.loadIn4bit': [true],
    'engine.compileLayers': [true],
    'engine.kvCacheBytes': [2 ** 30],
    'engine.prefixCacheBytes': [0],
    'engine.slots': [64],
    'engine.kind': ['vllm'],
    'engine.vllm.args': [['-O3'], { engine: { kind: 'vllm' } }],
    'engine.vllm.devices': [[1], { engine: { kind: 'vllm' } }],
    'engine.vllm.policies': [3, { engine: { kind: 'vllm' } }],
    'engine.vllm.url': ['http://other-host:8000', EXTERNAL],
    'engine.vllm.adapters.folder': ['/mnt/other', EXTERNAL],
    'engine.vllm.adapters.as': ['/srv/adapters', EXTERNAL],
    models: [{ mine: './models/mine' }],
    train: [{ steps: 60 }],
    prices: [{ 'openai/gpt-5-mini': { usdPerMillionInput: 1, usdPerMillionOutput: 2 } }],
    track: [[{ kind: 'csv' }]],
    trace: [[{ kind: 'otlp' }]],
    'metrics.port': [9100],
    'metrics.host': ['::1', { metrics: { port: 9100 } }],
    'localStack.temporalPort': [9001],
    'localStack.uiPort': [9002],
    'localStack.enginePort': [9003],
    'localStack.standby': [false],
  };

  test('each field has a probe', () => {
    const fields = leavesOf(TemperConfigSchema).map(({ path }) => path);
    expect(Object.keys(FIELDS).toSorted()).toEqual(fields.toSorted());
  });

  test.each(Object.keys(FIELDS))('%s has an effect', async (path) => {
    const [value, besides = {}] = FIELDS[path]!;
    const given = setField(structuredClone(besides) as Record<string, unknown>, path, value);
    expect(await madeOf(given)).not.toEqual(await madeOf(besides));
  });

  /** All that processes are started with. */
  async function madeOf(input: object): Promise<object> {
    const config = defineConfig(input);
    const commands = { temporal: ['temporal'], gpuWorker: ['gpu-worker'], worker: ['worker'] };
    const install = { env: { TEMPER_VLLM_PYTHON: '/vllm/python' }, cache: project, onEvent: () => undefined };
    const options = { project, agentFile: null, models: {}, onEvent: () => undefined, commands };
    const spec = await specifyStack({ folders: projectFolders(project), config, install, options });
    const models = absoluteModels(project, config.models);
    return {
      spec,
      models,
      flags: flagText(config),
      targets: namesOfTargets(config),
      metrics: configuredMetrics(config),
      price: findPrice(config.prices, 'openai/gpt-5-mini'),
      worker: [workflowOptions(config, 'a store'), activityOptions(config)],
    };
  }
});
