import { CHECKPOINT_HELP, JSON_FLAG } from '../../operations/flags.ts';
import { PROVIDER_NAMES } from '../../play/connections/providers.ts';
import { AGENT_ARGUMENT, defineCommand, type CommandContext } from '../command-line/command.ts';
import { RUN_FLAGS } from '../planning/run-flag-table.ts';

export const evalCommand = defineCommand({
  name: 'eval',
  group: 'Use what was trained',
  summary: 'compare models and checkpoints on held-out scenarios, without training',
  details: [
    'MODEL is a CHECKPOINT or a base model on the local stack, or a hosted model: provider/model',
    `(${PROVIDER_NAMES.join(', ')}; its key is in`,
    'PROVIDER_API_KEY), or URL#MODEL for any OpenAI-compatible server. If you pass several, all play the same',
    'scenarios. Prints reward, metrics, tokens, cost and latency with 95 % intervals, and writes an HTML page.',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    'temper eval examples/tic-tac-toe/agent.ts --model demo@best --model demo@0 --model pocket',
    'temper eval agent.ts --model demo --model openai/gpt-5 --price openai/gpt-5=1.25/10 --max-tokens 2000',
    'temper eval agent.ts --model Qwen/Qwen3-4B --model poet --judge',
    'temper eval agent.ts --model my-model --base-url http://127.0.0.1:8000/v1 --key-env MY_KEY',
  ],
  arguments: { agent: AGENT_ARGUMENT },
  flags: {
    model: {
      kind: 'texts',
      placeholder: 'MODEL',
      also: 'base-model',
      description: 'model or checkpoint to evaluate; repeatable',
      required: 'pass a checkpoint such as RUN@best, a base model, or provider/model',
    },
    scenarios: {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'maximum number of scenarios; of more, a sample that is the same each time',
      default: "the run's, or 200",
    },
    'base-url': {
      kind: 'text',
      placeholder: 'URL',
      description: 'OpenAI-compatible server that serves every MODEL, instead of the local stack',
    },
    'key-env': {
      kind: 'text',
      placeholder: 'NAME',
      description: 'environment variable that holds the key of --base-url or URL#MODEL',
    },
    price: {
      kind: 'texts',
      placeholder: 'MODEL=IN/OUT',
      description: 'US dollars per million input and output tokens; repeatable',
    },
    temperature: {
      kind: 'number',
      minimum: 0,
      maximum: 2,
      placeholder: 'X',
      description: 'sampling temperature',
      default: "the run's, or 1; for a hosted model its own",
    },
    'max-tokens': {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'token limit of each hosted call, whatever the agent sets; for reasoning models',
    },
    'chat-template': {
      ...RUN_FLAGS['chat-template'],
      default: "that of the checkpoint's run, or the model's own",
    },
    seed: {
      kind: 'integer',
      minimum: 0,
      placeholder: 'N',
      description: "seed of the engine's sampling and of the agent's random, but not of a hosted model",
      default: "the run's, or 1",
    },
    judge: {
      kind: 'boolean',
      description: "let the hosted judge of the agent's ruler compare the models' attempts, and give the rewards",
    },
    'max-cost-usd': {
      kind: 'number',
      minimum: 0,
      placeholder: 'USD',
      description: 'begin no call of the judge once so much is spent; run it again with more to continue',
      needs: ['judge'],
    },
    concurrency: {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'scenarios played at once',
      default: '64',
    },
    out: {
      kind: 'text',
      placeholder: 'FILE',
      description: 'output file',
      default: '.temper/reports/eval-AGENT.html',
    },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./eval.ts')).evaluate(context),
});

export type EvalContext = CommandContext<typeof evalCommand>;
