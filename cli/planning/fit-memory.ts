/**
 * Micro-batch size of a new run for the memory of this machine, planned from the model's config before anything is loaded.
 * The run records it, so that it stays the same on any machine.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineSettings } from '../../core/contract/engine.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { canQuantize, mergeEngineConfig } from '../../core/rules/engine-rules.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { isSupervisedOnly } from '../../core/rules/supervised.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { examineModel, type ModelReport } from '../../workers/doctor/model-report.ts';
import { knownModels } from '../../workers/base-models/known-models.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { engineOverrides, type EngineFlags } from '../command-line/engine-flags.ts';
import type { Output } from '../terminal/output.ts';
import { programContext } from '../terminal/stack-events.ts';
import { isBuiltIn } from '../../workers/base-models/base-model.ts';
import type { RunPlan } from './run-plan.ts';

/** Smaller models always fit: planning would waste seconds. */
const SMALL_MODEL_BYTES = 256 << 20;
/** Memory factor of full fine-tuning. */
const FULL_SHARE = 8;

/**
 * Leaves the plan as it is if the GPU worker is remote, because its memory is unknown. `longestExample`: its tokens, if
 * known.
 */
export async function fitToMemory(
  plan: RunPlan,
  asked: EngineFlags,
  context: CommandEnvironment,
  longestExample: number | null = null,
): Promise<RunPlan> {
  const { project, env, output } = context;
  const configured = await loadConfig(project, env);
  const { config, template, models, hasOwnMicroBatch } = plan;
  const source = { ...knownModels(project, configured), ...models }[config.baseModel];
  if (configured.engine.url !== null || isSmall(config, source)) return plan;
  const { microBatchTokens } = config.train;
  const engine = mergeEngineConfig(configured.engine, engineOverrides(asked), plan.decided.kind);
  // Attempts have no length limit: plan for those that fit into a micro-batch.
  const longest = isSupervisedOnly(config) ? longestExample : null;
  const { memory } = await examineModel({
    ...programContext(context),
    name: config.baseModel,
    source,
    template: template?.file ?? null,
    train: config.train,
    engine,
    context: longest ?? (hasOwnMicroBatch ? microBatchTokens : null),
    compared: countCompared(config),
    fit: !hasOwnMicroBatch,
  });
  if (memory === null) return plan; // it cannot be used at all: the GPU worker says why
  refuseTooLarge(config, memory, longest, engine);
  return hasOwnMicroBatch ? plan : withMicroBatch(plan, memory.microBatchTokens, output);
}

type Memory = NonNullable<ModelReport['memory']>;

function refuseTooLarge(
  config: RunPlan['config'],
  { devices, microBatchTokens }: Memory,
  longest: number | null,
  engine: EngineSettings,
): void {
  const full = devices.find(({ fits }) => fits === false);
  if (full === undefined) return;
  const limit = microBatchTokens === longest ? '--max-example-tokens' : '--micro-batch-tokens';
  throw tooLarge(config, { tokens: microBatchTokens, limit }, full, canQuantize(engine));
}

/** Lowers the micro-batch size; a longer example gets a micro-batch of its own. */
function withMicroBatch(plan: RunPlan, fitted: number, output: Output): RunPlan {
  const { config } = plan;
  const { microBatchTokens } = config.train;
  if (fitted >= microBatchTokens) return plan;
  output.errorLine(
    `note: micro-batches have ${fitted} tokens instead of ${microBatchTokens}, to fit into the free memory; --micro-batch-tokens sets them`,
  );
  return { ...plan, config: { ...config, train: { ...config.train, microBatchTokens: fitted } } };
}

function isSmall({ baseModel, train }: RunPlan['config'], source: string | undefined): boolean {
  if (source === undefined) return isBuiltIn(baseModel);
  const small = train.lora === null ? SMALL_MODEL_BYTES / FULL_SHARE : SMALL_MODEL_BYTES;
  const names = statSync(source, { throwIfNoEntry: false })?.isDirectory() === true ? readdirSync(source) : null;
  return names !== null && names.reduce((sum, name) => sum + statSync(join(source, name)).size, 0) < small;
}

type Device = Memory['devices'][number];

function tooLarge(
  { baseModel, train }: RunPlan['config'],
  { tokens, limit }: { readonly tokens: number; readonly limit: string },
  { device, bytes, needed, parts }: Device,
  canBeQuantized: boolean,
): TemperError {
  const largest = parts.toSorted((a, b) => b.bytes - a.bytes).slice(0, 4);
  const figures = largest.map((part) => `${part.name} ${gib(part.bytes)}`).join(', ');
  const isFull = train.lora === null;
  const adapter = isFull ? 'leave --full-fine-tuning out, ' : '';
  const smaller = `pass --dtype bfloat16${isFull || !canBeQuantized ? '' : ' or --load-in-4bit'}`;
  const sharding = isFull ? '' : 'shard it over several GPUs (--devices N --shard-base-model --engine vllm), ';
  return badConfig(
    `${baseModel} must fit into the ${gib(bytes ?? 0)} of ${device} to be trained, but needs ${gib(needed)} with micro-batches of ${tokens} tokens (${figures}); ${adapter}lower ${limit} or engine.kvCacheBytes, ${smaller}, ${sharding}or use a smaller model (temper doctor model shows the plan)`,
  );
}

const gib = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;

/** Adapters that a step reads besides its parent's at the same time: the reference, and one that sampled. */
function countCompared({ train, maxStaleness, groupsAhead }: RunConfig): number {
  return (train.klReference === undefined ? 0 : 1) + (maxStaleness + groupsAhead === 0 ? 0 : 1);
}
