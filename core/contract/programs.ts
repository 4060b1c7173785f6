/** Inputs of the GPU worker's programs: JSON on the stdin of `python -m temper_gpu.process NAME`. */
import { z } from 'zod';
import { ExampleRendering, InitialiseInput, TrainInput } from './contract.ts';
import { EngineSettings, GpuWorkerSettings } from './engine.ts';
import { LoraConfig, OptimizerConfig } from './optimizer.ts';
import { count, positive, sha256 } from './values.ts';

const described = {
  /** The model's name and its place: a folder, `hub:` or `s3://`; null: it ships with the GPU worker. */
  model: z.string(),
  source: z.string().nullable().default(null),
  /** A file instead of the model's own. */
  chatTemplate: z.string().nullable().default(null),
};
const committed = {
  /** The store's URI, and `run@step` in it, with `:policy` for another one than `main`. */
  store: z.string(),
  policy: z.string(),
  /** File with the base models that this host knows. */
  models: z.string().nullable().default(null),
};

export const CheckTemplateInput = z.strictObject(described).meta({ id: 'CheckTemplateInput' });

export const CheckExamplesInput = z
  .strictObject({
    ...described,
    /** A file of lines of messages and tools. */
    dataset: z.string(),
    rendering: ExampleRendering,
  })
  .meta({ id: 'CheckExamplesInput' });

export const ExportInput = z
  .strictObject({
    ...committed,
    /** An empty one. */
    folder: z.string(),
    format: z.enum(['merged', 'gguf', 'mlx']).default('merged'),
    dtype: z.enum(['float32', 'bfloat16', 'float16']).default('float32'),
    /** Of the format gguf. */
    quantize: z.enum(['q8_0']).optional(),
    /** A template in the store instead of the base model's own. */
    chatTemplateSha256: sha256.nullable().default(null),
  })
  .meta({ id: 'ExportInput' });
export type ExportInput = z.input<typeof ExportInput>;

/** `fetch_model` downloads a model, and prints its progress first. */
export const FetchModelInput = z.strictObject({ source: z.string() }).meta({ id: 'FetchModelInput' });

/** An answer of a deployment at temperature 0. */
export const GivenAnswer = z
  .strictObject({
    promptTokenIds: z.array(count),
    text: z.string(),
    scores: z.array(z.strictObject({ token: z.string(), logprob: z.number() })).nullable(),
    hasEnded: z.boolean(),
  })
  .meta({ id: 'GivenAnswer' });
export type GivenAnswer = z.infer<typeof GivenAnswer>;

export const MeasureInput = z
  .strictObject({ ...committed, answers: z.array(GivenAnswer), device: EngineSettings.shape.device })
  .meta({ id: 'MeasureInput' });

/** The inputs of a committed step, and where to compute it again. */
export const RecomputeInput = z
  .strictObject({ settings: GpuWorkerSettings, work: z.union([TrainInput, InitialiseInput]) })
  .meta({ id: 'RecomputeInput' });

/** `plan` reckons the memory that a model needs. */
export const ModelPlanInput = z
  .strictObject({
    ...described,
    /** Tokens of the longest conversation; null: not known. */
    context: positive.nullable().default(null),
    microBatchTokens: positive,
    /** Null: all weights are trained. */
    lora: LoraConfig.nullable(),
    optimizer: OptimizerConfig.shape.kind,
    /** The loss has an entropy term. */
    trainsEntropy: z.boolean().default(false),
    /** Checkpoints that a step reads besides its parent: a reference, an older sampler. */
    compared: z.int().min(0).max(2).default(0),
    /** The largest micro-batch, up to `microBatchTokens`, is looked for that fits into free memory. */
    fit: z.boolean().default(false),
    engine: EngineSettings.prefault({}),
  })
  .meta({ id: 'ModelPlanInput' });
export type ModelPlanInput = z.infer<typeof ModelPlanInput>;

export interface ProgramInputs {
  readonly check_examples: z.input<typeof CheckExamplesInput>;
  readonly check_template: z.input<typeof CheckTemplateInput>;
  readonly export: ExportInput;
  readonly fetch_model: z.input<typeof FetchModelInput>;
  readonly measure: z.input<typeof MeasureInput>;
  readonly plan: ModelPlanInput;
  readonly recompute: z.input<typeof RecomputeInput>;
}
