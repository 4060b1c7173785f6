import { PROVIDER_NAMES } from '../../play/connections/providers.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { evalCommand } from '../eval/command.ts';
import { RUN_FLAGS } from '../planning/run-flag-table.ts';
import { scenariosCommand } from '../scenarios/command.ts';
import { STAGES } from './stages.ts';

/** `--model` is the hosted one. */
const { also: _also, ...BASE_MODEL } = RUN_FLAGS['base-model'];

export const autoCommand = defineCommand({
  name: 'auto',
  summary: 'make an agent for a task in one sentence, train it, and evaluate it',
  details: [
    'Makes a project in FOLDER, in stages: scenarios, agent (agent.ts with a system prompt and a rubric for RULER), rubric',
    '(checked on a good, a mediocre and a bad answer), run, evaluation, report. You can stop after a stage, edit its files,',
    'and run the command again: it uses your files and never overwrites them. Killed at any point, the same command',
    'continues, and pays for no answer twice. In a folder that has an auto.json, you need not repeat TASK and flags.',
    '',
    'MODEL is a hosted model: provider/model',
    `(${PROVIDER_NAMES.join(', ')};`,
    'its key is in PROVIDER_API_KEY), or URL#MODEL for any OpenAI-compatible server. Settings of the run are in',
    'temporal.config.ts of FOLDER.',
  ],
  examples: [
    'temper auto "write a haiku about the given subject" --base-model Qwen/Qwen3-4B --steps 60',
    'temper auto "answer questions about my notes" --mcp "npx -y SERVER ./notes" --until rubric',
    'temper auto --out ./write-a-haiku --redo rubric',
  ],
  arguments: { task: { placeholder: 'TASK', optional: true } },
  flags: {
    out: { kind: 'text', placeholder: 'FOLDER', description: 'folder of the project', default: 'named after TASK' },
    mcp: { kind: 'text', placeholder: 'COMMAND|URL', description: 'MCP server whose tools the agent uses' },
    tools: scenariosCommand.flags.tools,
    'mcp-env': scenariosCommand.flags['mcp-env'],
    instructions: scenariosCommand.flags.instructions,
    count: scenariosCommand.flags.count,
    'held-out': {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'how many of them are held out for evaluation',
      default: 'a third',
    },
    attempts: {
      kind: 'integer',
      minimum: 0,
      maximum: 100,
      placeholder: 'N',
      description: 'attempts of the hosted model at each scenario; those that it never solves are dropped',
      default: '1',
    },
    model: {
      kind: 'text',
      placeholder: 'MODEL',
      description: 'hosted model that writes scenarios, system prompt and rubric',
      default: 'openai/gpt-5-mini',
    },
    judge: {
      kind: 'text',
      placeholder: 'MODEL',
      description: 'hosted model that compares attempts in training and evaluation',
      default: 'that of --model',
    },
    'key-env': {
      kind: 'text',
      placeholder: 'NAME',
      description: 'environment variable that holds the key of models named by URL',
    },
    price: evalCommand.flags.price,
    'max-cost-usd': {
      kind: 'number',
      minimum: 0,
      placeholder: 'USD',
      description: 'begin no call once so much is spent in all stages; run it again with more to continue',
    },
    'base-model': BASE_MODEL,
    steps: RUN_FLAGS.steps,
    'groups-per-step': RUN_FLAGS['groups-per-step'],
    'group-size': RUN_FLAGS['group-size'],
    'max-tokens': RUN_FLAGS['max-tokens'],
    'learning-rate': RUN_FLAGS['learning-rate'],
    until: { kind: 'choice', choices: STAGES, placeholder: 'STAGE', description: `stop after ${STAGES.join(', ')}` },
    redo: {
      kind: 'choice',
      choices: STAGES,
      placeholder: 'STAGE',
      description: 'do this stage and the later ones again; files that you edited are refused',
    },
  },
  run: async (context): Promise<number> => (await import('./auto.ts')).auto(context),
});

export type AutoContext = CommandContext<typeof autoCommand>;
