/** A tool as an agent writes it: what the model sees of it, how arguments are checked, and what a call does. */
import { badConfig } from '../../core/contract/failures.ts';
import { anything, must, optional, takes } from '../options/options.ts';

/** JSON Schema; shown to the model as it is. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Arguments that nobody has checked: what a JSON schema describes, as the model wrote it. */
export type UncheckedArguments = Record<string, unknown>;

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type Validation<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

/** A schema that checks and describes itself, by Standard Schema and Standard JSON Schema: zod's do from 4.2 on. */
export interface ArgumentsSchema<T> {
  readonly '~standard': {
    readonly validate: (value: unknown) => Validation<T> | Promise<Validation<T>>;
    readonly jsonSchema: {
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>;
    };
  };
}

export interface ToolDefinition<T, P> {
  /** Letters, digits, _ and -; at most 64. */
  name: string;
  /** Tells the model when to call it, and what comes back. */
  description?: string;
  /** The schema of the arguments: a zod object is checked before `run` is called, a JSON schema is only sent to the model. */
  parameters?: P;
  /** Its result goes back to the model: text as it is, anything else as JSON. What it throws goes back as an error. */
  run: (args: T) => unknown;
  /** Side effects, or chance: in an attempt that is played again it gets its recorded result, and is not run again. */
  once?: boolean;
  /** A call that succeeds ends the loop: it hands in the agent's work. */
  ends?: boolean;
}

export interface Tool {
  readonly name: string;
  readonly once: boolean;
  readonly ends: boolean;
  /** The tool's form in a request. */
  readonly definition: {
    type: 'function';
    function: { name: string; description?: string; parameters: Record<string, unknown> };
  };
  /** Checks arguments and runs; throws where either fails. */
  readonly call: (args: unknown) => Promise<unknown>;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const checkDefinition = takes<ToolDefinition<never, unknown>>('tool', {
  name: must(`text that matches ${NAME.source}`, (name) => typeof name === 'string' && NAME.test(name), 'rename it'),
  run: anything,
  ...optional('description', 'parameters', 'once', 'ends'),
});

const NO_ARGUMENTS: JsonSchema = { type: 'object', properties: {} };

export function tool<T>(definition: ToolDefinition<T, ArgumentsSchema<T>> & { parameters: ArgumentsSchema<T> }): Tool;
export function tool(definition: ToolDefinition<UncheckedArguments, JsonSchema>): Tool;
export function tool(definition: ToolDefinition<never, unknown>): Tool {
  const { name, description, run, once = false, ends = false } = checkDefinition(definition);
  const parameters = (definition.parameters ?? NO_ARGUMENTS) as ArgumentsSchema<never> | JsonSchema;
  const schema = isSchema(parameters) ? parameters : null;
  const shown = schema === null ? { ...parameters } : describe(schema, name);
  return {
    name,
    once,
    ends,
    definition: {
      type: 'function',
      function: { name, ...(description === undefined ? {} : { description }), parameters: shown },
    },
    call: async (args) => run((schema === null ? asObject(args) : await validate(schema, args)) as never),
  };
}

function isSchema(parameters: ArgumentsSchema<never> | JsonSchema): parameters is ArgumentsSchema<never> {
  return '~standard' in parameters;
}

/** Without `$schema`: the model has no use for it, and it would stand in every prompt. */
function describe(schema: ArgumentsSchema<never>, name: string): Record<string, unknown> {
  const { jsonSchema } = schema['~standard'] as Partial<ArgumentsSchema<never>['~standard']>;
  if (jsonSchema === undefined) {
    const rule = `parameters of the tool ${name} must be a schema that can be written as JSON Schema`;
    throw badConfig(`${rule}, this one can't; use zod from 4.2 on, or pass a JSON schema`);
  }
  const { $schema: _, ...shown } = jsonSchema.input({ target: 'draft-2020-12' });
  return shown;
}

async function validate(schema: ArgumentsSchema<never>, args: unknown): Promise<unknown> {
  const checked = await schema['~standard'].validate(args);
  if (checked.issues === undefined) return checked.value;
  throw new Error(checked.issues.map(describeIssue).join('; '));
}

function describeIssue({ message, path = [] }: Issue): string {
  const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return place === '' ? message : `${place}: ${message}`;
}

export function asObject(args: unknown): UncheckedArguments {
  if (typeof args === 'object' && args !== null && !Array.isArray(args)) return args as UncheckedArguments;
  throw new Error(`arguments must be an object, got ${JSON.stringify(args)}`);
}
