import { JSON_FLAG } from '../../operations/flags.ts';
import { PROVIDER_NAMES } from '../../play/connections/providers.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { evalCommand } from '../eval/command.ts';

export const scenariosCommand = defineCommand({
  name: 'scenarios',
  group: 'Make data',
  summary: 'generate scenarios for an MCP server or a task with a hosted model',
  usage: '(--from-mcp SERVER | --from-task TEXT) --model MODEL [flags]',
  details: [
    'Asks the hosted model for scenarios with a difficulty from 1 to 5, removes near-duplicates, tries each scenario several',
    'times, drops those that no attempt solved, and splits the rest into training and held-out scenarios. With --from-mcp the',
    'attempts call the tools of the server. If there are enough scenarios, those that every attempt solved are dropped, too.',
    'Answers are stored before use: run the same command again after an interruption, and it continues without paying twice.',
    `MODEL is provider/model (${PROVIDER_NAMES.join(', ')};`,
    'its key is in PROVIDER_API_KEY), or URL#MODEL for any OpenAI-compatible server.',
  ],
  examples: [
    "temper scenarios --from-mcp 'npx -y @modelcontextprotocol/server-filesystem ./data' --model openai/gpt-5-mini",
    "temper scenarios --from-task 'Classify a support ticket as billing, bug or other.' --model openai/gpt-5-mini --count 60",
  ],
  arguments: {},
  flags: {
    'from-mcp': {
      kind: 'text',
      placeholder: 'SERVER',
      description: 'MCP server whose tools the scenarios are for: a command line or a URL',
      excludes: ['from-task'],
    },
    'from-task': {
      kind: 'text',
      placeholder: 'TEXT',
      description: 'task, in one sentence, that the scenarios are inputs for',
    },
    model: {
      kind: 'text',
      placeholder: 'MODEL',
      description: 'hosted model that writes the scenarios, and decides whether an attempt solved one',
      required: 'pass a hosted model such as openai/gpt-5-mini',
    },
    count: {
      kind: 'integer',
      minimum: 2,
      maximum: 10_000,
      placeholder: 'N',
      description: 'number of scenarios, held-out ones included',
      default: '24',
    },
    'held-out': {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'how many of them are held out, of each difficulty its share',
      default: 'a third',
    },
    instructions: { kind: 'text', placeholder: 'TEXT', description: 'what else the scenarios must be like' },
    attempts: {
      kind: 'integer',
      minimum: 0,
      maximum: 100,
      placeholder: 'N',
      description: 'attempts at each scenario; 0 keeps all scenarios untried',
      default: '3',
    },
    'try-with': {
      kind: 'text',
      placeholder: 'MODEL',
      description: 'model that tries them: hosted, or a base model or CHECKPOINT on the local stack',
      default: 'that of --model',
      excludes: ['attempts 0'],
    },
    'max-turns': {
      kind: 'integer',
      minimum: 1,
      maximum: 64,
      placeholder: 'N',
      description: 'answers of the model in one attempt',
      default: '10',
      needs: ['from-mcp'],
      excludes: ['attempts 0'],
    },
    tools: {
      kind: 'list',
      placeholder: 'NAMES',
      description: 'tools of the MCP server to use',
      default: 'all, and its resources',
      needs: ['from-mcp'],
    },
    'mcp-env': {
      kind: 'texts',
      placeholder: 'NAME',
      description: 'environment variable passed on to the MCP server, or the bearer token for a URL; repeatable',
      needs: ['from-mcp'],
    },
    'max-cost-usd': {
      kind: 'number',
      minimum: 0,
      placeholder: 'USD',
      description: 'begin no call once so much is spent; run it again with more to continue',
    },
    price: evalCommand.flags.price,
    'base-url': {
      kind: 'text',
      placeholder: 'URL',
      description: 'OpenAI-compatible server that serves every MODEL',
    },
    'key-env': evalCommand.flags['key-env'],
    seed: {
      kind: 'integer',
      minimum: 0,
      placeholder: 'N',
      description: 'seed of the split; another one generates everything anew',
      default: '1',
    },
    concurrency: {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'attempts played at once',
      default: '8',
      excludes: ['attempts 0'],
    },
    out: {
      kind: 'text',
      placeholder: 'FILE',
      description: 'output file; held-out scenarios go to FILE.held-out.jsonl',
      default: 'scenarios.jsonl',
    },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./scenarios.ts')).generateScenarios(context),
});

export type ScenariosContext = CommandContext<typeof scenariosCommand>;
