/** What a base model needs of this machine, found by `temper_gpu.process.plan` without reading its weights. */
import { z } from 'zod';
import type { LoraConfig, TrainConfig } from '../../core/contract.ts';
import { resolveBaseModel } from '../base-models/base-model.ts';
import { loadConfig, type ChosenEngine } from '../config/config.ts';
import { refuseLonePart } from '../devices/devices.ts';
import { chosenEngine, type AskedEngine, type EngineKind } from '../config/engine-choices.ts';
import type { InstallOptions } from '../install/install.ts';
import { checkQuantization, refuseQuantizedTraining } from '../config/quantization.ts';
import { askPython, type ProgramFlags } from '../python/run-program.ts';

const bytes = z.number();
const DeviceSchema = z.object({
  device: z.string(),
  /** Null where the memory is not known. */
  bytes: bytes.nullable(),
  needed: bytes,
  fits: z.boolean().nullable(),
  parts: z.array(
    z.object({ phase: z.enum(['always', 'serving', 'training']), name: z.string(), bytes, reason: z.string() }),
  ),
});
const ReportSchema = z.object({
  model: z.string(),
  /** Of a model of the Hugging Face hub. */
  commit: z.string().nullable(),
  architecture: z.string(),
  parameters: z.number(),
  contextWindow: z.number(),
  dtype: z.string(),
  engine: z.string(),
  /** Why the model can be neither served nor trained. */
  refusal: z.string().nullable(),
  /** What the model's chat template cannot write. */
  templateGaps: z.array(z.string()),
  memory: z
    .object({
      context: z.number(),
      microBatchTokens: z.number(),
      /** Null where vLLM decides it. */
      longestRequest: z.number().nullable(),
      requestsAtOnce: z.number().nullable(),
      devices: z.array(DeviceSchema),
    })
    .nullable(),
});
export type ModelReport = z.infer<typeof ReportSchema>;

interface Examined extends InstallOptions, AskedEngine {
  readonly project: string;
  /** What samples unless the engine is asked for, or configured (`decideEngine`). */
  readonly usual: EngineKind;
  /** A file with a chat template in the place of the model's own. */
  readonly template: string | null;
  readonly context: number | null;
  /** What a run would train. */
  readonly train: Pick<TrainConfig, 'lora' | 'optimizer' | 'microBatchTokens' | 'entropyCoefficient' | 'klReference'>;
  /** As the run's; absent: none. */
  readonly maxStaleness?: number;
}

export interface ExaminedModel extends Examined {
  readonly cwd: string;
  /** As `--base-model` has it. */
  readonly model: string;
}

export async function reportOnModel(options: ExaminedModel): Promise<ModelReport> {
  const { project, cwd, env, model: text, template } = options;
  const config = await loadConfig(project, env);
  const { name, models } = resolveBaseModel(text, cwd, project, config.models, { hasTemplate: template !== null });
  return examineModel({ ...options, name, source: models[name] });
}

interface SourcedModel extends Examined {
  /** As runs name it, and where it is. */
  readonly name: string;
  readonly source: string | undefined;
  /** The largest micro-batch, up to that of `train`, is looked for that fits into what is free. */
  readonly fit?: boolean;
}

export async function examineModel(options: SourcedModel): Promise<ModelReport> {
  const { project, env, name, source, template, fit = false } = options;
  const engine = chosenEngine((await loadConfig(project, env)).engine, options, options.usual);
  checkWeights(engine, options.train);
  const place = { model: name, source, 'chat-template': template, context: options.context };
  const flags = { ...place, ...trainedBy(options), fit, ...engineFlags(engine) };
  return askPython(ReportSchema, `the model ${name} could not be examined`, { ...options, name: 'plan', flags });
}

/** As the GPU worker would refuse it. */
function checkWeights(engine: ChosenEngine, { lora }: Examined['train']): void {
  if (lora === null) refuseQuantizedTraining(engine);
  checkQuantization(engine);
  refuseLonePart(engine);
}

function trainedBy({ train, maxStaleness = 0 }: Examined): ProgramFlags {
  const { lora, optimizer, microBatchTokens, entropyCoefficient, klReference } = train;
  // A step reads them besides its parent: what it is compared with, and what has sampled.
  const compared = (klReference === undefined ? 0 : 1) + (maxStaleness === 0 ? 0 : 1);
  return {
    ...(lora === null ? { 'full-fine-tuning': true } : adaptedBy(lora)),
    optimizer: optimizer.kind,
    entropy: entropyCoefficient > 0,
    compared: compared || null,
    'micro-batch-tokens': microBatchTokens,
  };
}

function adaptedBy({ rank, targetModules, layers, dora, dropout }: LoraConfig): ProgramFlags {
  return {
    'lora-rank': rank,
    'lora-targets': targetModules,
    'lora-layers': layers,
    'lora-dora': dora,
    'lora-dropout': dropout > 0,
  };
}

function engineFlags(engine: ChosenEngine): ProgramFlags {
  const { kind, device, dtype, devices, slots, threads, shardBaseModel, loadIn4bit } = engine;
  const { kvCacheBytes, prefixCacheBytes, vllm } = engine;
  const isVllm = kind === 'vllm';
  return {
    engine: kind,
    device,
    dtype,
    slots,
    threads,
    devices: devices === 1 ? null : devices,
    'shard-base-model': shardBaseModel,
    'load-in-4bit': loadIn4bit,
    'kv-cache-bytes': kvCacheBytes,
    'prefix-cache-bytes': isVllm ? null : prefixCacheBytes,
    'vllm-devices': isVllm && vllm.devices.length > 0 ? vllm.devices.join(',') : null,
    'vllm-url': isVllm ? vllm.url : null,
  };
}
