/** The flags of a run and their tables in docs/commands.md, from the metadata of the contract's fields (`npm run contract`). */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { z } from 'zod';
import type { OptionMeta, OptionSection } from '../../core/contract/options.ts';
import { LOSS_NAMES, RunConfig } from '../../core/contract/contract.ts';
import { describeFlagRules } from '../../cli/command-line/flag-rules.ts';
import type { RunFlag } from '../../cli/planning/run-flag.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';

export const FLAGS_FILE = fileURLToPath(new URL('../../cli/planning/run-flag-table.ts', import.meta.url));
export const COMMANDS_PAGE = fileURLToPath(new URL('../../docs/commands.md', import.meta.url));

export const GENERATED =
  '/** Generated from the metadata of core/contract/ by test/contract/generate-flags.ts; a test compares. Do not edit. */';
const HEADER = `${GENERATED}
import type { RunFlag } from './run-flag.ts';

type Rows = Readonly<Record<string, RunFlag>>;
`;

const CONFIG: unknown = defaultRunConfig({ run: 'run', agent: 'agent', baseModel: 'model' });
const WARM_START = 'warm-start';

/** Of docs/commands.md. */
export const HEADINGS: Readonly<Record<OptionSection, string>> = {
  run: 'The run',
  groups: 'Scenarios and groups',
  evaluation: 'Evaluation',
  'warm-start': 'Warm start',
  optimizer: 'Optimizer and adapter',
  rollouts: 'Rollouts',
  loss: 'Advantages and loss',
  judge: 'Judge',
  costs: 'Costs',
  deploy: 'The target',
};

interface Option extends OptionMeta {
  readonly path: string;
  readonly flag: string;
  readonly schema: z.ZodType;
}

const OPTIONS = optionsOf(RunConfig, []);
const RUN = OPTIONS.filter(({ section }) => section !== WARM_START);
const WARM = OPTIONS.filter(({ section }) => section === WARM_START);

/** The tables that the command line imports: a row for each flag, and the names of those that runs on chats take. */
export function generateFlags(): string {
  const ofSupervised = RUN.filter(({ section, isSupervised }) => section === 'optimizer' || isSupervised === true);
  const names = ofSupervised.map(({ flag }) => literal(flag));
  return [
    HEADER,
    table('RUN_FLAGS', RUN),
    'export const RUN_FLAG_ROWS: readonly (readonly [flag: string, row: RunFlag])[] = Object.entries(RUN_FLAGS);\n',
    `export const SUPERVISED_FLAGS: readonly string[] = [${names.join(', ')}];\n`,
    table('WARM_START_FLAGS', WARM.filter(isOfWarmStart)),
    table(
      'EXAMPLE_FLAGS',
      WARM.filter((option) => !isOfWarmStart(option)),
    ),
  ].join('\n');
}

/** Without it, a flag is of the chats of any run. */
function isOfWarmStart({ flag }: Option): boolean {
  return flag.startsWith(WARM_START);
}

function table(name: string, options: readonly Option[]): string {
  const lines = options.map((option) => `  ${literal(option.flag)}: ${literal(rowOf(option))},`);
  return `export const ${name} = {\n${lines.join('\n')}\n} as const satisfies Rows;\n`;
}

/** The page with its generated tables as they must be: between `<!-- flags: SECTION -->` and the next empty line. */
export function generatePage(page = readFileSync(COMMANDS_PAGE, 'utf8')): string {
  return page.replaceAll(/(<!-- flags: (\S+) -->\n).*?\n(?=\n)/gs, (_, marker: string, section: string) => {
    const rows = OPTIONS.filter((option) => option.section === section).map(docsRow);
    return `${marker}| flag | type | default | meaning |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
  });
}

/** Every field with metadata, in the order of the contract. */
function optionsOf(schema: z.ZodType, path: readonly string[]): Option[] {
  const inner = unwrap(schema);
  const meta = schema.meta()?.option;
  const place = inner instanceof z.ZodDiscriminatedUnion ? [...path, inner.def.discriminator] : path;
  const own = { flag: kebabCase(path.at(-1) ?? ''), path: place.join('.'), schema };
  const nested = Object.entries(membersOf(inner)).flatMap(([key, field]) => optionsOf(field, [...path, key]));
  return meta === undefined ? nested : [{ ...own, ...meta }, ...nested];
}

/** The fields of a union are those of its members; one that several have is described by the first. */
function membersOf(schema: z.ZodType): Record<string, z.ZodType> {
  if (schema instanceof z.ZodObject) return schema.shape;
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return {};
  return schema.options.reduce((found, member) => ({ ...found, ...membersOf(member as z.ZodType), ...found }), {});
}

export function unwrap(schema: z.ZodType): z.ZodType {
  const isWrapped =
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault;
  return isWrapped ? unwrap(schema.unwrap() as z.ZodType) : schema;
}

export function kebabCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export const PLACEHOLDERS = {
  integer: 'N',
  number: 'X',
  text: 'NAME',
  choice: 'NAME',
  list: 'A,B',
  ranges: 'N-M,N',
  json: 'JSON',
};
type Kind = 'boolean' | keyof typeof PLACEHOLDERS;

export function kindOf({ kind, schema }: Pick<Option, 'kind' | 'schema'>): Kind {
  const type = unwrap(schema);
  if (kind === 'boolean' || type instanceof z.ZodBoolean) return 'boolean';
  if (type instanceof z.ZodNumber) return type instanceof z.ZodNumberFormat ? 'integer' : 'number';
  if (type instanceof z.ZodEnum || type instanceof z.ZodDiscriminatedUnion) return 'choice';
  if (type instanceof z.ZodRecord) return 'json';
  if (!(type instanceof z.ZodArray)) return 'text';
  return type.element instanceof z.ZodNumber ? 'ranges' : 'list';
}

/** A literal of TypeScript on one line. */
export function literal(value: string | object): string {
  return inspect(value, { breakLength: Infinity, maxStringLength: null });
}

function rowOf(option: Option): object {
  const kind = kindOf(option);
  const row = {
    kind,
    negatable: kind === 'boolean' ? true : undefined,
    placeholder: kind === 'boolean' ? undefined : (option.placeholder ?? PLACEHOLDERS[kind]),
    choices: kind === 'choice' ? choicesOf(option) : undefined,
    path: option.path,
    none: option.none,
    also: option.also,
    value: option.value,
    because: option.because,
    description: plain(option.description),
    default: shownDefault(option, kind),
    heading: HEADINGS[option.section],
    isMain: option.isMain,
    ...rulesOf(option),
  };
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
}

/** All weights have no adapter; the other flags of a warm start need its file. */
function rulesOf({ path, flag }: Option): Pick<RunFlag, 'needs' | 'excludes'> {
  if (path.startsWith('train.lora.')) return { excludes: ['full-fine-tuning'] };
  return flag.startsWith(`${WARM_START}-`) ? { needs: [WARM_START] } : {};
}

function choicesOf({ schema }: Pick<Option, 'schema'>): readonly unknown[] {
  const type = unwrap(schema);
  return type instanceof z.ZodEnum ? type.options : LOSS_NAMES;
}

function shownDefault(option: Omit<Option, 'flag'>, kind: Kind): string | undefined {
  if (option.default !== undefined) return option.default === 'required' ? undefined : plain(option.default);
  const value = valueOf(option);
  if (kind === 'boolean' || value === null || value === undefined) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function valueOf({ path }: Pick<Option, 'path'>): string | number | boolean | null | undefined {
  return path
    .split('.')
    .reduce<unknown>((at, key) => (at as Record<string, unknown> | null)?.[key], CONFIG) as ReturnType<typeof valueOf>;
}

/** Help shows no Markdown. */
export function plain(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll('`', '');
}

const TYPES: Readonly<Record<string, string>> = { boolean: 'switch', choice: 'text', json: 'object' };

function docsRow(option: Option): string {
  const kind = kindOf(option);
  const placeholder = kind === 'boolean' ? '' : ` ${option.placeholder ?? PLACEHOLDERS[kind]}`;
  const described = [option.description, option.more].filter((text) => text !== undefined).join('; ');
  const meaning = described + describeFlagRules(rulesOf(option)).replaceAll(/--[a-z-]+/g, '`$&`');
  return `| \`--${option.flag}${placeholder}\` | ${TYPES[kind] ?? kind} | ${docsDefault(option, kind)} | ${meaning} |`;
}

function docsDefault(option: Option, kind: Kind): string {
  const value = valueOf(option);
  if (option.default !== undefined) return option.default;
  if (kind === 'boolean') return value === true ? 'on' : 'off';
  if (value === null || value === undefined) return 'none';
  return typeof value === 'string' ? `\`${value}\`` : JSON.stringify(value);
}
