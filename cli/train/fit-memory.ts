/**
 * A new run's micro-batches, by the memory of this machine: planned from the model's config before anything is loaded. The
 * number is recorded with the run, so that it stays the same wherever the run goes on.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { TemperError } from '../../core/failures.ts';
import { BUILT_IN_MODELS } from '../../core/wire-constants.ts';
import { loadConfig, type EngineConfig } from '../../workers/config.ts';
import { examineModel, type ModelReport } from '../../workers/doctor/model-report.ts';
import { chosenEngine } from '../../workers/engine-choices.ts';
import { cacheFolder } from '../../workers/folders.ts';
import { knownModels } from '../../workers/local-stack/known-models.ts';
import type { Surroundings } from '../command-line/command.ts';
import { askedEngine, type EngineFlags } from '../command-line/engine-flags.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { PlannedRun } from './read-planned-run.ts';

/** A smaller model fits wherever Temper runs: planning would cost seconds for nothing. */
const SMALL_MODEL_BYTES = 256 << 20;
/** So many times as much memory is needed where all weights are trained. */
const FULL_SHARE = 8;

/** Where the GPU worker is elsewhere, nothing is known of its memory: the plan stays as it is. */
export async function fitToMemory(plan: PlannedRun, asked: EngineFlags, context: Surroundings): Promise<PlannedRun> {
  const { project, env, output, signal } = context;
  const configured = await loadConfig(project, env);
  const { config, template, models, hasOwnMicroBatch } = plan;
  const source = { ...knownModels(project, configured), ...models }[config.baseModel];
  if (configured.engine.url !== null || isSmall(config, source)) return plan;
  const onEvent = createEventPrinter((line) => output.errorLine(line));
  const { microBatchTokens } = config.train;
  const { memory } = await examineModel({
    project,
    env,
    cache: cacheFolder(env),
    signal,
    onEvent,
    name: config.baseModel,
    source,
    template: template?.file ?? null,
    train: config.train,
    ...askedEngine(asked),
    context: microBatchTokens,
    fit: !hasOwnMicroBatch,
  });
  if (memory === null) return plan; // it cannot be used at all: the GPU worker says why
  const [full] = memory.devices.filter(({ fits }) => fits === false);
  if (full !== undefined) {
    const engine = chosenEngine(configured.engine, askedEngine(asked));
    throw tooLarge(config, memory.microBatchTokens, full, canQuantize(engine));
  }
  if (hasOwnMicroBatch || memory.microBatchTokens === microBatchTokens) return plan;
  output.errorLine(
    `note: micro-batches have ${memory.microBatchTokens} tokens instead of ${microBatchTokens}, to fit into the free memory; --micro-batch-tokens sets them`,
  );
  return { ...plan, config: { ...config, train: { ...config.train, microBatchTokens: memory.microBatchTokens } } };
}

function isSmall({ baseModel, train }: PlannedRun['config'], source: string | undefined): boolean {
  if (source === undefined) return (BUILT_IN_MODELS as readonly string[]).includes(baseModel);
  const small = train.lora === null ? SMALL_MODEL_BYTES / FULL_SHARE : SMALL_MODEL_BYTES;
  const names = statSync(source, { throwIfNoEntry: false })?.isDirectory() === true ? readdirSync(source) : null;
  return names !== null && names.reduce((sum, name) => sum + statSync(join(source, name)).size, 0) < small;
}

/** Not where it is so already, nor for vLLM. */
function canQuantize({ kind, loadIn4bit }: EngineConfig): boolean {
  return kind === 'embedded' && !loadIn4bit;
}

type Device = NonNullable<ModelReport['memory']>['devices'][number];

function tooLarge(
  { baseModel, train }: PlannedRun['config'],
  tokens: number,
  { device, bytes, needed, parts }: Device,
  canBeQuantized: boolean,
): TemperError {
  const largest = parts.toSorted((a, b) => b.bytes - a.bytes).slice(0, 4);
  const figures = largest.map((part) => `${part.name} ${gib(part.bytes)}`).join(', ');
  const isFull = train.lora === null;
  const adapter = isFull ? 'leave --full-fine-tuning out, ' : '';
  const smaller = `pass --dtype bfloat16${isFull || !canBeQuantized ? '' : ' or --load-in-4bit'}`;
  const sharding = isFull ? '' : 'shard it over several GPUs (--devices N --shard-base-model --engine vllm), ';
  return new TemperError(
    'BadConfig',
    `${baseModel} must fit into the ${gib(bytes ?? 0)} of ${device} to be trained, but needs ${gib(needed)} with micro-batches of ${tokens} tokens (${figures}); ${adapter}lower --micro-batch-tokens or engine.kvCacheBytes, ${smaller}, ${sharding}or use a smaller model (temper doctor --model shows the plan)`,
  );
}

const gib = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
