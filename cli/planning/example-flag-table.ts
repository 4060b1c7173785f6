/** Flags of supervised steps: of `temper sft`, and with other names of the warm start of `temper train`. */
import type { RunFlag } from './run-flag.ts';

export const EXAMPLE_FLAGS = {
  'examples-per-step': {
    kind: 'integer',
    placeholder: 'N',
    path: 'supervised.examplesPerStep',
    description: 'examples per step [16]',
  },
  turns: {
    kind: 'text',
    placeholder: 'WHICH',
    path: 'supervised.turns',
    description: 'assistant messages to train: all or last ["all"]',
  },
  'held-out-examples': {
    kind: 'integer',
    placeholder: 'N',
    path: 'supervised.heldOut',
    description: 'examples that are held out and scored; default: a tenth, at most 200',
  },
  'max-example-tokens': {
    kind: 'integer',
    placeholder: 'N',
    path: 'supervised.maxExampleTokens',
    description: "token limit of an example; default: the model's context window",
  },
  overlong: {
    kind: 'text',
    placeholder: 'NAME',
    path: 'supervised.overlong',
    description: 'examples above the limit: mask leaves them out, truncate cuts them, refuse ends the run ["mask"]',
  },
} satisfies Readonly<Record<string, RunFlag>>;

export const WARM_START_FLAGS = {
  'warm-start': {
    kind: 'text',
    placeholder: 'FILE',
    path: 'supervised.dataset.sha256',
    description: 'JSON lines of chats that the first steps train before the agent is played',
  },
  'warm-start-steps': {
    kind: 'integer',
    placeholder: 'N',
    path: 'supervised.steps',
    description: 'how many of --steps train them; default: one pass over the file',
  },
  'warm-start-examples-per-step': EXAMPLE_FLAGS['examples-per-step'],
  'warm-start-turns': EXAMPLE_FLAGS.turns,
  'warm-start-held-out-examples': EXAMPLE_FLAGS['held-out-examples'],
  'warm-start-max-example-tokens': EXAMPLE_FLAGS['max-example-tokens'],
  'warm-start-overlong': EXAMPLE_FLAGS.overlong,
  'warm-start-learning-rate': {
    kind: 'number',
    placeholder: 'X',
    path: 'supervised.learningRate',
    description: 'learning rate of these steps; default: --learning-rate',
  },
  'warm-start-learning-rate-schedule': {
    kind: 'text',
    placeholder: 'NAME',
    path: 'supervised.learningRateSchedule',
    description: 'constant, linear or cosine, down to a tenth at the last of these steps ["constant"]',
  },
} satisfies Readonly<Record<string, RunFlag>>;
