import { defineCommand, withRules, type CommandContext } from '../command-line/command.ts';
import { evalCommand } from '../eval/command.ts';
import { scenariosCommand } from '../scenarios/command.ts';
import { TEMPLATE_NAMES, TEMPLATES } from './templates.ts';

const WIDTH = Math.max(...TEMPLATE_NAMES.map((name) => name.length));

const { flags: SCENARIOS } = scenariosCommand;

/** Flags of an agent for a task. */
const TASK_FLAGS = withRules(
  {
    mcp: { kind: 'text', placeholder: 'COMMAND|URL', description: 'MCP server whose tools the agent uses' },
    instructions: SCENARIOS.instructions,
    count: SCENARIOS.count,
    'held-out': SCENARIOS['held-out'],
    attempts: {
      kind: 'integer',
      minimum: 0,
      maximum: 100,
      placeholder: 'N',
      description: 'attempts of the hosted model at each scenario; those that it never solves are dropped',
      default: '1',
    },
    writer: {
      kind: 'text',
      placeholder: 'MODEL',
      description: 'hosted model that writes scenarios, system prompt and rubric',
      default: 'openai/gpt-5-mini',
    },
    judge: {
      kind: 'text',
      placeholder: 'MODEL',
      description: 'hosted model that compares attempts',
      default: 'that of --writer',
    },
    'key-env': {
      kind: 'text',
      placeholder: 'NAME',
      description: 'environment variable that holds the key of models named by URL',
    },
    price: evalCommand.flags.price,
    'max-cost-usd': SCENARIOS['max-cost-usd'],
  } as const,
  { needs: ['task'] },
);

export const initCommand = defineCommand({
  name: 'init',
  group: 'Start',
  summary: 'start a project: an agent that learns, its test, and the configuration',
  details: [
    'FOLDER is made if it does not exist; by default it is the working folder. On a terminal you are asked for what you did',
    'not pass. Files that exist are never overwritten: the command names them and ends with exit code 2. package.json and',
    '.gitignore get the lines that they lack; a tsconfig.json is kept as it is.',
    '',
    'With --task, a hosted model writes scenarios, a system prompt and a rubric for the judge. The rubric is checked: the judge',
    'must rank a good, a mediocre and a bad answer. Files that exist are kept and used, so you can edit a file and run the same',
    'command again. After an interruption it continues, and pays for no answer twice. A hosted MODEL is provider/model, with',
    'its key in PROVIDER_API_KEY, or URL#MODEL.',
    '',
    'Templates:',
    ...TEMPLATE_NAMES.map((name) => `  ${name.padEnd(WIDTH)}  ${TEMPLATES[name].summary}`),
  ],
  examples: [
    'temper init',
    'temper init my-agent --template tools',
    'temper init my-agent --base-model Qwen/Qwen3-4B --yes',
    'temper init haiku --task "Write a haiku about the given subject." --base-model Qwen/Qwen3-4B',
  ],
  arguments: { folder: { placeholder: 'FOLDER', optional: true } },
  flags: {
    template: {
      kind: 'choice',
      choices: TEMPLATE_NAMES,
      placeholder: 'NAME',
      description: 'what the project starts with',
      default: 'plain',
      excludes: ['task'],
    },
    'base-model': {
      kind: 'text',
      placeholder: 'MODEL',
      also: 'model',
      description: 'base model of temper train',
      default: 'pocket (pocket-tools for the template tools)',
    },
    task: {
      kind: 'text',
      placeholder: 'TEXT',
      description: 'task of the agent, in one sentence: a hosted model writes the agent and its scenarios',
    },
    ...TASK_FLAGS,
    ...withRules({ tools: SCENARIOS.tools, 'mcp-env': SCENARIOS['mcp-env'] }, { needs: ['mcp'] }),
    yes: { kind: 'boolean', description: 'ask nothing, and use the defaults' },
  },
  run: async (context): Promise<number> =>
    context.flags.task === null
      ? (await import('./init.ts')).init(context)
      : (await import('./init-task.ts')).initTask(context),
});

export type InitContext = CommandContext<typeof initCommand>;
