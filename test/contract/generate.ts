/**
 * The Python contract from the zod schemas: `npm run contract` writes `gpu-worker/temper_gpu/contract.py`, and what
 * `generate-flags.ts` makes of the fields' metadata.
 * Needs `datamodel-codegen` beside the interpreter that TEMPER_PYTHON names (it is one of the development requirements).
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import * as constants from '../../core/contract/wire-constants.ts';
import * as contract from '../../core/contract/contract.ts';
import {
  DEPLOY_FLAGS_FILE,
  DEPLOYMENT_PAGE,
  generateDeployFlags,
  generateDeploymentPage,
} from './generate-deploy-flags.ts';
import { COMMANDS_PAGE, FLAGS_FILE, generateFlags, generatePage } from './generate-flags.ts';
import { COMMAND_TABLE_FILE, generateCommandTable, generateOperations } from './generate-operations.ts';
import { FAILURES } from '../../core/contract/failures.ts';
import * as engine from '../../core/contract/engine.ts';
import * as programs from '../../core/contract/programs.ts';

export const CONTRACT_FILE = fileURLToPath(new URL('../../gpu-worker/temper_gpu/contract.py', import.meta.url));

const HEADER = `"""Generated from core/contract/contract.ts by test/contract/generate.ts; a test regenerates and compares. Do not edit."""`;

/** The same in every class; a base class has it once. */
const CLASS_HEAD = `(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        frozen=True,
    )
`;
const BASE_CLASS = `class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


`;

const OPTIONS = [
  '--input-file-type=jsonschema',
  '--output-model-type=pydantic_v2.BaseModel',
  '--target-python-version=3.11',
  '--snake-case-field',
  '--allow-population-by-field-name',
  '--use-annotated',
  '--use-union-operator',
  '--use-standard-collections',
  '--enum-field-as-literal=all',
  '--disable-timestamp',
  '--skip-root-model',
  '--type-mappings=uri=string',
  '--use-type-alias',
  '--strict-nullable',
  '--enable-faux-immutability',
  '--use-double-quotes',
  '--disable-future-imports',
  '--formatters=builtin',
];

/** Every schema that the contract exports, by its id on the wire. */
export function wireTypes(): Map<string, z.ZodType> {
  const exported = [contract, engine, programs].flatMap((module) => Object.entries<unknown>(module));
  const named = exported.filter((entry): entry is [string, z.ZodType] => entry[1] instanceof z.ZodType);
  return new Map(named.toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

export function jsonSchema(): object {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of wireTypes()) registry.add(schema, { id });
  const target = { target: 'draft-2020-12', io: 'input', uri: (id: string) => `#/$defs/${id}` } as const;
  const { schemas } = z.toJSONSchema(registry, target);
  const definitions = Object.entries(schemas).map(([id, schema]) => {
    const { $schema: _, $id: __, ...body } = schema;
    return [id, mergeNullable(nameDiscriminator(body, wireTypes().get(id)))];
  });
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', $defs: Object.fromEntries(definitions) };
}

/** Python too decides by the discriminator alone, so that an error speaks of one member. */
function nameDiscriminator(body: object, type: z.ZodType | undefined): object {
  if (!(type instanceof z.ZodDiscriminatedUnion)) return body;
  return { ...body, discriminator: { propertyName: type.def.discriminator } };
}

/** `anyOf: [T, null]` becomes `type: [T, 'null']`: the same values, but no Python class of its own for a bounded number. */
function mergeNullable(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(mergeNullable);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { anyOf = [], ...rest } = schema as { anyOf?: { type?: string }[] };
  const [value, none, ...others] = anyOf;
  if (none?.type === 'null' && others.length === 0 && value?.type !== undefined)
    return { ...rest, ...value, type: [value.type, 'null'] };
  return Object.fromEntries(Object.entries(schema).map(([key, inner]) => [key, mergeNullable(inner)]));
}

export function generateContract(): string {
  const folder = mkdtempSync(join(tmpdir(), 'temper-contract-'));
  try {
    writeFileSync(join(folder, 'contract.json'), JSON.stringify(jsonSchema(), null, 2));
    const files = ['--input', join(folder, 'contract.json'), '--output', join(folder, 'contract.py')];
    execFileSync(codegen(), [...OPTIONS, `--custom-file-header=${HEADER}`, ...files], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const types = readFileSync(join(folder, 'contract.py'), 'utf8').replaceAll(CLASS_HEAD, '(Strict):\n');
    return `${nameDefaults(types.replace(/^class /m, `${BASE_CLASS}class `))}\n\n${constantLines()}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Defaults of nested objects become objects of their class, which type checks can read. */
function nameDefaults(python: string): string {
  return python.replaceAll(/Annotated\[(\w+), Field\(validate_default=True\)\] = \{\}/g, '$1 = $1()');
}

function constantLines(): string {
  const lines = Object.entries(constants).map(([name, value]) => `${name} = ${asPython(value)}`);
  return `# From core/contract/wire-constants.ts.\n${lines.toSorted().join('\n')}\n\n${failureLines()}`;
}

function failureLines(): string {
  const types = Object.entries(FAILURES);
  const quoted = types.map(([type]) => JSON.stringify(type)).join(', ');
  const retryable = types.filter((entry) => entry[1].retryable).map(([type]) => JSON.stringify(type));
  const set = `RETRYABLE: frozenset[FailureType] = frozenset((${retryable.join(', ')}))`;
  return `# From core/contract/failures.ts.\nFailureType = Literal[${quoted}]\n${set}\n`;
}

function asPython(value: unknown): string {
  if (value instanceof RegExp) return JSON.stringify(value.source);
  if (Array.isArray(value)) return `(${value.map(asPython).join(', ')})`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${asPython(member)}`);
  return `{${members.join(', ')}}`;
}

/** Adds the defaults of new fields to the example of a type. */
function fillFixture(file: URL, type: z.ZodType): void {
  const fixture = type.parse(JSON.parse(readFileSync(file, 'utf8')));
  writeFileSync(file, `${JSON.stringify(fixture, null, 2)}\n`);
}

function codegen(): string {
  const python = process.env['TEMPER_PYTHON'];
  return python === undefined ? 'datamodel-codegen' : join(dirname(python), 'datamodel-codegen');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(FLAGS_FILE, generateFlags());
  writeFileSync(COMMAND_TABLE_FILE, await generateCommandTable());
  writeFileSync(COMMANDS_PAGE, generateOperations(generatePage()));
  writeFileSync(DEPLOY_FLAGS_FILE, generateDeployFlags());
  writeFileSync(DEPLOYMENT_PAGE, generateDeploymentPage());
  for (const [name, type] of wireTypes()) fillFixture(new URL(`${name}.json`, import.meta.url), type);
  writeFileSync(CONTRACT_FILE, generateContract());
}
