/** What a base model needs of this machine, found by `temper_gpu.process.plan` without reading its weights. */
import { z } from 'zod';
import type { LoraConfig, TrainConfig } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { resolveBaseModel } from '../base-model.ts';
import { loadConfig, type EngineConfig } from '../config.ts';
import type { Dtype, EngineKind } from '../engine-choices.ts';
import type { InstallOptions } from '../install/install.ts';
import { checkQuantization, refuseQuantizedTraining } from '../quantization.ts';
import { runPythonProgram } from '../python/run-program.ts';

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

interface Examined extends InstallOptions {
  readonly project: string;
  /** A file with a chat template in the place of the model's own. */
  readonly template: string | null;
  readonly context: number | null;
  /** What a run would train. */
  readonly train: Pick<TrainConfig, 'lora' | 'optimizer' | 'microBatchTokens' | 'entropyCoefficient'>;
  readonly engine: EngineKind | null;
  readonly device: string | null;
  readonly dtype: Dtype | null;
  readonly devices?: number | null;
  readonly shardBaseModel?: boolean;
  readonly loadIn4bit?: boolean;
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
  const config = await loadConfig(project, env);
  checkWeights(config.engine, options);
  const { answer, lastLine } = await runPythonProgram({
    ...options,
    name: 'plan',
    args: [
      '--model',
      name,
      ...(source === undefined ? [] : ['--source', source]),
      ...(template === null ? [] : ['--chat-template', template]),
      ...(options.context === null ? [] : ['--context', String(options.context)]),
      ...trainedBy(options.train),
      ...(fit ? ['--fit'] : []),
      ...engineOf(config.engine, options),
    ],
  });
  if (answer !== null) return ReportSchema.parse(answer);
  throw new TemperError('EngineFailed', `the model ${name} could not be examined: ${lastLine}; run temper doctor`);
}

/** As the GPU worker would refuse it. */
function checkWeights(configured: EngineConfig, asked: Examined): void {
  const weights = weightsOf(configured, asked);
  if (asked.train.lora === null) refuseQuantizedTraining(weights);
  checkQuantization({ kind: asked.engine ?? configured.kind, ...weights });
}

function trainedBy({ lora, optimizer, microBatchTokens, entropyCoefficient }: Examined['train']): string[] {
  return [
    ...(lora === null ? ['--full-fine-tuning'] : adaptedBy(lora)),
    ...(optimizer.kind === undefined ? [] : ['--optimizer', optimizer.kind]),
    ...(entropyCoefficient === undefined ? [] : ['--entropy']),
    '--micro-batch-tokens',
    String(microBatchTokens),
  ];
}

function adaptedBy({ rank, targetModules, layers, dora, dropout }: LoraConfig): string[] {
  return [
    '--lora-rank',
    String(rank),
    ...(targetModules === null ? [] : ['--lora-targets', ...targetModules]),
    ...(layers === undefined ? [] : ['--lora-layers', ...layers.map(String)]),
    ...(dora === true ? ['--lora-dora'] : []),
    ...(dropout === undefined ? [] : ['--lora-dropout']),
  ];
}

function weightsOf(configured: EngineConfig, asked: Examined): Pick<EngineConfig, 'shardBaseModel' | 'loadIn4bit'> {
  return {
    shardBaseModel: asked.shardBaseModel === true || configured.shardBaseModel,
    loadIn4bit: asked.loadIn4bit === true || configured.loadIn4bit,
  };
}

function trainedOn(configured: EngineConfig, asked: Examined): string[] {
  const devices = asked.devices ?? configured.devices;
  const { shardBaseModel, loadIn4bit } = weightsOf(configured, asked);
  return [
    ...(devices === 1 ? [] : ['--devices', String(devices)]),
    ...(shardBaseModel ? ['--shard-base-model'] : []),
    ...(loadIn4bit ? ['--load-in-4bit'] : []),
  ];
}

function engineOf(configured: EngineConfig, asked: Examined): string[] {
  const { kvCacheBytes, prefixCacheBytes, slots, threads, vllm } = configured;
  const kind = asked.engine ?? configured.kind;
  const flags = {
    '--engine': kind,
    '--device': asked.device ?? configured.device,
    '--dtype': asked.dtype ?? configured.dtype,
    '--slots': String(slots),
    '--threads': String(threads),
  };
  return [
    ...Object.entries(flags).flat(),
    ...trainedOn(configured, asked),
    ...(kvCacheBytes === null ? [] : ['--kv-cache-bytes', String(kvCacheBytes)]),
    ...(prefixCacheBytes === null || kind === 'vllm' ? [] : ['--prefix-cache-bytes', String(prefixCacheBytes)]),
    ...(vllm.devices.length === 0 || kind !== 'vllm' ? [] : [`--vllm-devices=${vllm.devices.join(',')}`]),
    ...(vllm.url === null || kind !== 'vllm' ? [] : ['--vllm-url', vllm.url]),
  ];
}
