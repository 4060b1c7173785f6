import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { COMMAND_TABLE_FILE, generateCommandTable } from './generate-operations.ts';
import { DEPLOY_FLAGS_FILE, generateDeployFlags } from './generate-deploy-flags.ts';
import { FLAGS_FILE, generateFlags } from './generate-flags.ts';
import { CONTRACT_FILE, generateContract, wireTypes } from './generate.ts';

const GENERATOR_TIMEOUT_MS = 120_000;

const folder = new URL('.', import.meta.url);
const fixtures = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => name.replace('.json', ''));

function readFixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8'));
}

test('every wire type has a fixture', () => {
  expect(fixtures.toSorted()).toEqual([...wireTypes().keys()].toSorted());
});

test.each(fixtures)('the fixture of %s parses and loses nothing', (name) => {
  const fixture = readFixture(name);
  expect(wireTypes().get(name)?.parse(fixture)).toEqual(fixture);
});

test.each(fixtures.filter((name) => name !== 'StepMetrics'))('%s refuses a field that it does not know', (name) => {
  const fixture = { ...(readFixture(name) as object), unheardOf: 1 };
  expect(wireTypes().get(name)?.safeParse(fixture).success).toBe(false);
});

test(
  'the Python contract is what these schemas generate (else: npm run contract)',
  { timeout: GENERATOR_TIMEOUT_MS },
  () => {
    expect(generateContract()).toBe(readFileSync(CONTRACT_FILE, 'utf8'));
  },
);

test('tables of flags and commands are what schemas and definitions generate (else: npm run contract)', async () => {
  expect(generateFlags()).toBe(readFileSync(FLAGS_FILE, 'utf8'));
  expect(await generateCommandTable()).toBe(readFileSync(COMMAND_TABLE_FILE, 'utf8'));
  expect(generateDeployFlags()).toBe(readFileSync(DEPLOY_FLAGS_FILE, 'utf8'));
});
