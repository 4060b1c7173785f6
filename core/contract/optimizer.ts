/** Contract types of what a step updates: the adapter, and the optimizer. */
import { z } from 'zod';

import { optionsOf } from './options.ts';
import { count, positive } from './values.ts';
import { SCHEMA_DEFAULTS } from './schema-defaults.ts';

const { lora: LORA, optimizer: OPTIMIZER } = SCHEMA_DEFAULTS.train;

const ofOptimizer = optionsOf('optimizer');

/** LoRA as PEFT means it. */
export const LoraConfig = z
  .strictObject({
    rank: ofOptimizer(positive.max(512), 'rank of the adapter', { flag: 'lora-rank', isMain: true }),
    alpha: ofOptimizer(z.number().positive(), 'scale of the adapter: alpha / rank', { flag: 'lora-alpha' }),
    targetModules: ofOptimizer(z.array(z.string()).min(1).nullable(), 'comma-separated module names', {
      flag: 'lora-target-modules',
      default: 'every linear layer except the output head',
    }),
    layers: ofOptimizer(
      z
        .array(count)
        .min(1)
        .refine((layers) => layers.every((layer, at) => at === 0 || layer > layers[at - 1]!), 'numbers must ascend')
        .optional(),
      'numbers of the [layers to adapt](training.md#choose-the-adapter), from 0',
      { flag: 'lora-layers', default: 'all' },
    ),
    rslora: ofOptimizer(z.boolean().default(LORA.rslora), 'scale the adapter by alpha / √rank (rsLoRA)', {
      flag: 'lora-rslora',
    }),
    dora: ofOptimizer(
      z.boolean().default(LORA.dora),
      "also train the lengths of the matrices' rows (DoRA); not with vLLM",
      { flag: 'lora-dora' },
    ),
    dropout: ofOptimizer(
      z.number().min(0).lt(1).default(LORA.dropout),
      "share of the adapter's inputs to drop in training",
      { flag: 'lora-dropout' },
    ),
  })
  .meta({ id: 'LoraConfig' });
export type LoraConfig = z.infer<typeof LoraConfig>;

export const OptimizerConfig = z
  .strictObject({
    weightDecay: ofOptimizer(z.number().min(0), 'weight decay of AdamW'),
    maxGradNorm: ofOptimizer(z.number().positive(), 'gradient norm above which the gradient is clipped'),
    /** `adamw_8bit` keeps moments block by block (arXiv 2110.02861). */
    kind: ofOptimizer(
      z.enum(['adamw', 'adamw_8bit']).default(OPTIMIZER.kind),
      '`adamw`, or `adamw_8bit`, which keeps its moments [in 8 bits](training.md#keep-the-optimizers-state-in-8-bits)',
      { flag: 'optimizer' },
    ),
    beta1: ofOptimizer(z.number().min(0).lt(1), "decay of AdamW's first moment"),
    beta2: ofOptimizer(z.number().min(0).lt(1), "decay of AdamW's second moment"),
    epsilon: ofOptimizer(z.number().positive(), 'epsilon of AdamW', { flag: 'adam-epsilon' }),
  })
  .meta({ id: 'OptimizerConfig' });
export type OptimizerConfig = z.infer<typeof OptimizerConfig>;
