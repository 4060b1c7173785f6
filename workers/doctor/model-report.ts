/** Requirements of a base model on this machine, from the GPU worker's program `plan`, which reads no weights. */
import { z } from 'zod';
import type { TrainConfig } from '../../core/contract/contract.ts';
import { checkSharding, checkTraining } from '../../core/rules/engine-rules.ts';
import { resolveBaseModel } from '../base-models/base-model.ts';
import { loadConfig, type MergedEngine } from '../config/config.ts';
import type { InstallOptions } from '../install/install.ts';
import { askPython } from '../python/run-program.ts';

const bytes = z.number();
const DeviceSchema = z.object({
  device: z.string(),
  /** Null if the memory is not known. */
  bytes: bytes.nullable(),
  needed: bytes,
  fits: z.boolean().nullable(),
  parts: z.array(
    z.object({ phase: z.enum(['always', 'serving', 'training']), name: z.string(), bytes, reason: z.string() }),
  ),
});
const ReportSchema = z.object({
  model: z.string(),
  /** Commit of a model of the Hugging Face hub. */
  commit: z.string().nullable(),
  architecture: z.string(),
  parameters: z.number(),
  contextWindow: z.number(),
  dtype: z.string(),
  engine: z.string(),
  /** Why the model can be neither served nor trained. */
  refusal: z.string().nullable(),
  /** Features that the model's chat template lacks. */
  templateGaps: z.array(z.string()),
  memory: z
    .object({
      context: z.number(),
      microBatchTokens: z.number(),
      /** Null if vLLM decides it. */
      longestRequest: z.number().nullable(),
      requestsAtOnce: z.number().nullable(),
      devices: z.array(DeviceSchema),
    })
    .nullable(),
});
export type ModelReport = z.infer<typeof ReportSchema>;

interface Examined extends InstallOptions {
  /** Settings of the GPU worker that would open it. */
  readonly engine: MergedEngine;
  /** A file with a chat template that replaces the model's own. */
  readonly template: string | null;
  readonly context: number | null;
  /** Training settings of the run. */
  readonly train: Pick<TrainConfig, 'lora' | 'optimizer' | 'microBatchTokens' | 'entropyCoefficient'>;
  /** Adapters that a step reads besides its parent's; absent: none. */
  readonly compared?: number;
}

export interface ExaminedModel extends Examined {
  readonly project: string;
  readonly cwd: string;
  /** Value of `--base-model`. */
  readonly model: string;
}

export async function reportOnModel(options: ExaminedModel): Promise<ModelReport> {
  const { project, cwd, env, model: text, template } = options;
  const config = await loadConfig(project, env);
  const { name, models } = resolveBaseModel(text, cwd, project, config.models, { hasTemplate: template !== null });
  return examineModel({ ...options, name, source: models[name] });
}

interface SourcedModel extends Examined {
  /** Name that runs record. */
  readonly name: string;
  readonly source: string | undefined;
  /** The largest micro-batch, up to that of `train`, is looked for that fits into what is free. */
  readonly fit?: boolean;
}

export async function examineModel(options: SourcedModel): Promise<ModelReport> {
  const { name, source = null, template, context, train, compared = 0, fit = false } = options;
  const { url: _, keyVariable: __, ...engine } = options.engine;
  checkTraining(engine, train);
  checkSharding(engine);
  const input = {
    model: name,
    source,
    chatTemplate: template,
    context,
    microBatchTokens: train.microBatchTokens,
    lora: train.lora,
    optimizer: train.optimizer.kind,
    trainsEntropy: train.entropyCoefficient > 0,
    compared,
    fit,
    engine,
  };
  return askPython(ReportSchema, `the model ${name} could not be examined`, { ...options, name: 'plan', input });
}
