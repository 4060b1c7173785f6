import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { TEMPLATE_NAMES, TEMPLATES } from './templates.ts';

const WIDTH = Math.max(...TEMPLATE_NAMES.map((name) => name.length));

export const initCommand = defineCommand({
  name: 'init',
  summary: 'start a project: an agent that learns, its test, and the configuration',
  details: [
    'FOLDER is made if it does not exist; by default it is the working folder. On a terminal you are asked for what you did',
    'not pass. Files that exist are never overwritten: the command names them and ends with exit code 2. package.json and',
    '.gitignore get the lines that they lack; a tsconfig.json is kept as it is.',
    '',
    'Templates:',
    ...TEMPLATE_NAMES.map((name) => `  ${name.padEnd(WIDTH)}  ${TEMPLATES[name].summary}`),
  ],
  examples: [
    'temper init',
    'temper init my-agent --template tools',
    'temper init my-agent --base-model Qwen/Qwen3-4B --yes',
  ],
  arguments: { folder: { placeholder: 'FOLDER', optional: true } },
  flags: {
    template: {
      kind: 'choice',
      choices: TEMPLATE_NAMES,
      placeholder: 'NAME',
      description: 'what the project starts with',
      default: 'plain',
    },
    'base-model': {
      kind: 'text',
      placeholder: 'MODEL',
      also: 'model',
      description: 'base model of temper train',
      default: 'pocket (pocket-tools for the template tools)',
    },
    yes: { kind: 'boolean', description: 'ask nothing, and use the defaults' },
  },
  run: async (context): Promise<number> => (await import('./init.ts')).init(context),
});

export type InitContext = CommandContext<typeof initCommand>;
