/** Tools of `temper mcp --allow-actions`: one for each operation that changes something. */
import { OPERATIONS } from '../../operations/index.ts';
import {
  fieldsOf,
  isAgentAction,
  listOperations,
  type Field,
  type Operation,
  type Place,
} from '../../operations/operation.ts';
import { readInput } from '../command-line/to-command.ts';
import type { ViewTool } from './tools.ts';

interface ActionTool extends Pick<ViewTool, 'name' | 'description' | 'inputSchema'> {
  readonly operation: Operation;
}

const TYPES: Readonly<Record<Field['kind'], object>> = {
  boolean: { type: 'boolean' },
  integer: { type: 'integer' },
  port: { type: 'integer' },
  number: { type: 'number' },
  choice: { type: 'string' },
  text: { type: 'string' },
  ranges: { type: 'string' },
  texts: { type: 'array', items: { type: 'string' } },
  list: { type: 'array', items: { type: 'string' } },
  json: { type: 'object' },
};

export const ACTION_TOOLS: readonly ActionTool[] = listOperations(OPERATIONS)
  .filter(isAgentAction)
  .map((operation) => ({
    name: operation.name.replaceAll(' ', '_'),
    description: [operation.summary, ...(operation.details ?? [])].join('\n'),
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(fieldsOf(operation).map((field) => [field.name, schemaOf(field)])),
      required: fieldsOf(operation).flatMap(({ name, isRequired }) => (isRequired ? [name] : [])),
      additionalProperties: false,
    },
    operation,
  }));

function schemaOf(field: Field): object {
  const limits = 'minimum' in field || 'maximum' in field ? { minimum: field.minimum, maximum: field.maximum } : {};
  const choices = field.kind === 'choice' ? { enum: field.choices } : {};
  return { ...TYPES[field.kind], description: field.description, ...limits, ...choices };
}

export async function callAction(
  { operation }: ActionTool,
  given: Readonly<Record<string, unknown>>,
  place: Place,
): Promise<string> {
  return JSON.stringify(await operation.run(readInput(operation, given).input, place));
}
