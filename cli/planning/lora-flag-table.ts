/** Flags for what a run trains: an adapter, or all weights. The others are in `run-flag-table.ts`. */
import type { RunFlag } from './run-flag.ts';

export const LORA_FLAGS = {
  'full-fine-tuning': {
    kind: 'boolean',
    negatable: true,
    path: 'train.lora',
    value: null,
    description: 'train all weights of the base model instead of a LoRA adapter; not with vLLM',
  },
  'lora-rank': { kind: 'integer', placeholder: 'N', path: 'train.lora.rank', description: 'rank of the adapter' },
  'lora-alpha': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.lora.alpha',
    description: 'scale of the adapter: alpha / rank',
  },
  'lora-rslora': {
    kind: 'boolean',
    negatable: true,
    path: 'train.lora.rslora',
    description: 'scale the adapter by alpha / √rank (rsLoRA)',
  },
  'lora-dora': {
    kind: 'boolean',
    negatable: true,
    path: 'train.lora.dora',
    description: "also train the lengths of the matrices' rows (DoRA); not with vLLM",
  },
  'lora-dropout': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.lora.dropout',
    description: "share of the adapter's inputs to drop in training",
  },
  'lora-layers': {
    kind: 'ranges',
    placeholder: 'N-M,N',
    path: 'train.lora.layers',
    description: 'numbers of the layers to adapt, from 0; default: all',
  },
  'lora-target-modules': {
    kind: 'list',
    placeholder: 'A,B',
    path: 'train.lora.targetModules',
    description: 'comma-separated module names; default: every linear layer except the output head',
  },
} satisfies Readonly<Record<string, RunFlag>>;
