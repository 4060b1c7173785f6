/** Tools of `temper mcp --allow-actions`: one for each operation that changes something. */
import { OPERATIONS } from '../../operations/index.ts';
import type { Argument, Flag } from '../../operations/flags.ts';
import { listOperations, memberName, type Operation, type Place } from '../../operations/operation.ts';
import { readInput } from '../command-line/to-command.ts';
import type { ViewTool } from './tools.ts';

export interface ActionTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ViewTool['inputSchema'];
  readonly operation: Operation;
}

const TEXTS = { type: 'array', items: { type: 'string' } } as const;

export const ACTION_TOOLS: readonly ActionTool[] = listOperations(OPERATIONS)
  .filter(({ effect }) => effect !== 'reads')
  .map((operation) => ({
    name: operation.name.replaceAll(' ', '_'),
    description: [operation.summary, ...(operation.details ?? [])].join('\n'),
    inputSchema: schemaOf(operation),
    operation,
  }));

function schemaOf({ arguments: args, flags }: Operation): ViewTool['inputSchema'] {
  const rows = [
    ...Object.entries(args).map(([name, row]) => [name, argumentSchema(row), row.optional !== true] as const),
    ...Object.entries(flags).map(
      ([name, row]) =>
        [memberName(name), flagSchema(row), row.kind !== 'boolean' && row.required !== undefined] as const,
    ),
  ];
  return {
    type: 'object',
    properties: Object.fromEntries(rows.map(([name, schema]) => [name, schema])),
    required: rows.flatMap(([name, , isRequired]) => (isRequired ? [name] : [])),
    additionalProperties: false,
  };
}

function argumentSchema({ placeholder, choices, repeats }: Argument): object {
  if (repeats === true) return { ...TEXTS, description: placeholder };
  return { type: 'string', description: placeholder, ...(choices && { enum: choices }) };
}

function flagSchema(flag: Flag): object {
  const { description } = flag;
  switch (flag.kind) {
    case 'boolean':
      return { type: 'boolean', description };
    case 'integer':
    case 'port':
    case 'number': {
      const { kind, minimum, maximum } = flag;
      return { type: kind === 'number' ? 'number' : 'integer', description, minimum, maximum };
    }
    case 'choice':
      return { type: 'string', description, enum: flag.choices };
    case 'texts':
    case 'list':
      return { ...TEXTS, description };
    case 'json':
      return { type: 'object', description };
    case 'text':
    case 'ranges':
    default:
      return { type: 'string', description };
  }
}

export async function callAction(
  { operation }: ActionTool,
  given: Readonly<Record<string, unknown>>,
  place: Place,
): Promise<string> {
  const { input } = readInput(operation, given);
  return JSON.stringify(await operation.run(input, place));
}
