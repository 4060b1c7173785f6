import { JSON_FLAG } from '../../operations/flags.ts';
import { PROVIDER_NAMES } from '../../play/connections/providers.ts';
import { AGENT_ARGUMENT, defineCommand, type CommandContext } from '../command-line/command.ts';
import { evalCommand } from '../eval/command.ts';

export const tryCommand = defineCommand({
  name: 'try',
  group: 'Start',
  summary: 'play an agent a few times and show what happens, without training',
  details: [
    'AGENT is a file whose default export is defineAgent({ … }), or a folder with an agent.ts; by default the working folder.',
    'Shows each conversation with its reward, metrics, tokens and time, then the mean of each scenario and warnings: rewards',
    'that never vary, missing metrics, rewritten histories, cut answers, failures. Writes no run into the store.',
    'MODEL is a base model or a CHECKPOINT such as RUN@latest on the local stack, or a hosted model: provider/model',
    `(${PROVIDER_NAMES.join(', ')}) or URL#MODEL.`,
    'On the local stack, requests stand under the rules of training: what would end a run is refused here, too.',
    'Exit code 1 if an attempt failed.',
  ],
  examples: [
    'temper try',
    'temper try agent.ts --model demo@latest --scenario game-7 --attempts 8',
    'temper try agent.ts --model openai/gpt-5-mini --eval --save attempts',
  ],
  arguments: { agent: AGENT_ARGUMENT },
  flags: {
    model: {
      kind: 'text',
      placeholder: 'MODEL',
      also: 'base-model',
      description: 'model that plays',
      default: 'base-model of temporal.config.ts, or pocket',
    },
    scenario: { kind: 'texts', placeholder: 'ID', description: 'scenario to play, by its id; repeatable' },
    scenarios: {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'play a sample of N scenarios, the same each time',
      default: '3',
      excludes: ['scenario'],
    },
    attempts: { kind: 'integer', minimum: 1, placeholder: 'N', description: 'attempts at each scenario', default: '2' },
    temperature: evalCommand.flags.temperature,
    'max-tokens': {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'token limit of a call that sets none; of each call of a hosted model, whatever the agent sets',
    },
    'chat-template': evalCommand.flags['chat-template'],
    eval: {
      kind: 'boolean',
      description: 'play evalScenarios, under the rules of evaluations: calls may set what training refuses',
    },
    replay: {
      kind: 'boolean',
      description:
        'run the agent again on the recorded answers, and warn if it asks for others (side effects happen again)',
    },
    save: {
      kind: 'text',
      placeholder: 'FOLDER',
      description: 'write each attempt to a JSON file, for replayAttempt of temper-rl/testing',
    },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./try.ts')).tryAgent(context),
});

export type TryContext = CommandContext<typeof tryCommand>;
