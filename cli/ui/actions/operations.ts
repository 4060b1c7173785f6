/** Every operation of `temper ui`: those on runs that commands have too, and those that need what the UI holds. */
import { RUN_ARGUMENT, type Arguments, type Flag, type Flags } from '../../../operations/flags.ts';
import { OPERATIONS } from '../../../operations/index.ts';
import { defineOperation, isRemoteAction, listOperations, type Operation } from '../../../operations/operation.ts';
import type { UiPlace } from '../chat/engines.ts';

export type UiOperation = Operation<Flags, Arguments, unknown, UiPlace>;

const STEP = {
  kind: 'integer',
  minimum: 0,
  placeholder: 'N',
  description: 'step of the checkpoint',
  required: 'pass the step of a checkpoint',
} satisfies Flag;

const AGENT_FILE = {
  kind: 'text',
  placeholder: 'FILE',
  description: 'only if the agent cannot be found in the project',
} satisfies Flag;

const fork = defineOperation({
  name: 'fork',
  summary: 'start a run from a checkpoint of another run',
  arguments: { run: RUN_ARGUMENT },
  flags: {
    step: STEP,
    name: {
      kind: 'text',
      placeholder: 'NAME',
      description: 'of the new run',
      required: 'pass the name of the new run',
    },
    set: { kind: 'texts', placeholder: 'KEY=VALUE', description: 'a setting that the new run has instead' },
  },
  effect: 'changes',
  needsServer: true,
  button: { label: 'Fork' },
  says: async (input, place) => (await import('./fork.ts')).planFork(place, input),
  run: async (input, place) => (await import('./fork.ts')).startFork(place, input),
  lines: ({ made, checkpoint }) => [`${made.run} was started from ${checkpoint}`],
});

const evaluate = defineOperation({
  name: 'evaluate',
  summary: 'play held-out scenarios with a checkpoint, as temper eval does',
  arguments: { run: RUN_ARGUMENT },
  flags: { step: STEP, 'agent-file': AGENT_FILE },
  effect: 'pays',
  button: { label: 'Evaluate' },
  says: async (input, place) => (await import('./evaluate.ts')).planEvaluation(place, input),
  run: async (input, place) => (await import('./evaluate.ts')).evaluate(place, input),
  lines: ({ lines, page }) => [...lines, `page: ${page}`],
});

const replay = defineOperation({
  name: 'replay',
  summary: 'play an attempt again from one of its turns on, with another model',
  arguments: { run: RUN_ARGUMENT },
  flags: {
    attempt: { kind: 'text', placeholder: 'ATTEMPT', description: 'its id', required: 'pass the id of an attempt' },
    'from-turn': {
      kind: 'integer',
      minimum: 0,
      placeholder: 'N',
      description: 'first turn with a new answer, from 0 on',
      required: 'pass the number of a turn',
    },
    model: {
      kind: 'text',
      placeholder: 'MODEL',
      description:
        'answers from this turn on: a checkpoint such as demo@12, or a hosted model such as openai/gpt-5-mini',
      required: 'pass a checkpoint or a hosted model',
    },
    'agent-file': AGENT_FILE,
  },
  effect: 'pays',
  says: async (input, place: UiPlace) => (await import('../replay/replay-action.ts')).sayReplay(input, place),
  run: async (input, place: UiPlace) => (await import('../replay/replay-action.ts')).replay(input, place),
  lines: ({ of, replay: id }) => [`The replay ${id} is beside the attempt ${of}.`],
});

const all: readonly UiOperation[] = [...listOperations(OPERATIONS), fork, evaluate, replay];

export const UI_OPERATIONS = all.filter(isRemoteAction);
