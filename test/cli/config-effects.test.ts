/** Every field of temporal.config.ts is asked for its effect: one without any fails here. */
import { expect, test } from 'vitest';
import { flagText } from '../../cli/planning/project-flags.ts';
import { findPrice } from '../../core/numbers/prices.ts';
import { absoluteModels } from '../../workers/base-models/known-models.ts';
import { defineConfig, TemperConfigSchema } from '../../workers/config/config.ts';
import { namesOfTargets } from '../../workers/config/targets.ts';
import { specifyStack } from '../../workers/local-stack/specify.ts';
import { configuredMetrics } from '../../workers/metrics/metrics-server.ts';
import { projectFolders } from '../../workers/project/folders.ts';
import { activityOptions, workflowOptions } from '../../workers/worker/worker.ts';
import { leavesOf, setField } from '../schema-leaves.ts';

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
  const project = '/project';
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
