/** Of the flags of a run, those that act where it plays no agent. */
import { RUN_FLAGS } from './run-flag-table.ts';

const NAMES = [
  'base-model',
  'seed',
  'eval-every',
  'learning-rate',
  'learning-rate-schedule',
  'final-learning-rate-share',
  'learning-rate-restarts',
  'warmup-steps',
  'weight-decay',
  'max-grad-norm',
  'optimizer',
  'beta1',
  'beta2',
  'adam-epsilon',
  'full-fine-tuning',
  'lora-rank',
  'lora-alpha',
  'lora-rslora',
  'lora-dora',
  'lora-dropout',
  'lora-layers',
  'lora-target-modules',
  'chat-template',
  'chat-template-kwargs',
  'micro-batch-tokens',
  'packing',
  'continue-as-new-every',
] as const satisfies readonly (keyof typeof RUN_FLAGS)[];

export const SUPERVISED_RUN_FLAGS = Object.fromEntries(NAMES.map((name) => [name, RUN_FLAGS[name]])) as Pick<
  typeof RUN_FLAGS,
  (typeof NAMES)[number]
>;
