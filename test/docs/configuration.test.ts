/** The tables of the configuration reference against the code: each field and variable has its row, with type and default. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { PROVIDER_NAMES, findProvider } from '../../play/connections/providers.ts';
import { TemperConfigSchema } from '../../workers/config/config.ts';
import { fieldOf, leavesOf, unwrapped } from '../schema-leaves.ts';
import { readPage, ROOT } from './markdown.ts';

const PAGE = readPage('docs/configuration.md');

/** Rows of the table below a heading: cells without their marks of code. */
function rowsBelow(heading: string): string[][] {
  const [, section = ''] = PAGE.split(`\n## ${heading}\n`);
  const table = section.split('\n## ')[0]!.split('\n');
  const rows = table.filter((line) => line.startsWith('| ')).slice(2);
  return rows.map((row) => row.slice(2, -2).split(' | '));
}

const isCode = (cell: string) => cell.replaceAll('`', '');

test('every field of temporal.config.ts has a row with its type and its default', () => {
  const defaults = TemperConfigSchema.parse({});
  const expected = leavesOf(TemperConfigSchema).map(({ path, schema }) => [
    path,
    wordsOf(schema),
    JSON.stringify(fieldOf(defaults, path)),
  ]);
  const told = rowsBelow('`temporal.config.ts`').map(([field, type, value]) => [isCode(field!), type, isCode(value!)]);
  expect(told).toEqual(expected);
});

test('every provider’s key is named', () => {
  for (const name of PROVIDER_NAMES) {
    const { keyVariable } = findProvider(name)!;
    if (keyVariable !== null) expect(PAGE).toContain(`\`${keyVariable}\``);
  }
});

test('every variable that the code names is in a table of people or of programs, and the other way round', () => {
  const ours = ['cli', 'workers', 'sdk', 'play', 'outbound', 'store', 'activities', 'core', 'gpu-worker/temper_gpu'];
  const pattern = String.raw`\bTEMPER_[A-Z][A-Z_]*[A-Z]\b`;
  const named = execFileSync('git', ['grep', '-ohE', pattern, '--', ...ours], { cwd: ROOT, encoding: 'utf8' });
  const ofPeople = rowsBelow('Environment variables of Temper').map(([variable]) => isCode(variable!));
  const ofPrograms = [...readPage('docs/programs.md').matchAll(/^\| `(TEMPER_\w+)` \|/gm)].map(([, name]) => name!);
  expect([...new Set(named.trim().split('\n'))].toSorted()).toEqual([...ofPeople, ...ofPrograms].toSorted());
});

function recordWords(value: z.ZodType): string {
  if (value instanceof z.ZodUnion) return 'flag → value';
  return value instanceof z.ZodObject ? 'name → object' : 'name → text';
}

/** A type as the page says it. */
function wordsOf(schema: z.ZodType): string {
  const { nullable, inner } = unwrapped(schema);
  return nullable ? `${plainWords(inner)} or null` : plainWords(inner);
}

function plainWords(schema: z.ZodType): string {
  if (schema instanceof z.ZodURL) return 'URL';
  if (schema instanceof z.ZodString) return 'text';
  if (schema instanceof z.ZodBoolean) return 'yes or no';
  if (schema instanceof z.ZodArray) return `list of ${plainWords(schema.element as z.ZodType)}`;
  if (schema instanceof z.ZodRecord) return recordWords(schema.valueType as z.ZodType);
  if (schema instanceof z.ZodDiscriminatedUnion) return 'targets';
  if (schema instanceof z.ZodEnum) return schema.options.map((option) => JSON.stringify(option)).join(', ');
  if (!(schema instanceof z.ZodNumber)) throw new Error(`no words for ${schema.type}`);
  return schema.maxValue === 65_535 ? 'port' : `whole number from ${schema.minValue}`;
}
