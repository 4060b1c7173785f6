/** Which of vLLM's tests of its OpenAI server apply to the GPU worker's server and `temper serve`, and why the others do not. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The names of tests, or how many there are: in a file without any that applies, nothing is imported. */
type Tests = readonly string[] | number;

interface Table {
  readonly version: string;
  /** Below tests/entrypoints. */
  readonly folders: readonly string[];
  /** Names of models that the tests ask for, of the GPU worker. */
  readonly models: readonly string[];
  /** Names that they ask for, of `temper serve`. */
  readonly servedModels: readonly string[];
  /** For people, by the names that `files` uses. */
  readonly reasons: Readonly<Record<string, string>>;
  /** Below tests/entrypoints: by `applies` or a reason. A case is `test_name[case]`, and goes before its test. */
  readonly files: Readonly<Record<string, Readonly<Record<string, Tests>>>>;
}

const APPLIES = 'applies';

export const TABLE = JSON.parse(readFileSync(join(import.meta.dirname, 'table.json'), 'utf8')) as Table;

export const FILES = Object.keys(TABLE.files).filter((file) => APPLIES in TABLE.files[file]!);

export const numApplying = countOf(APPLIES);

/** Counts by reason: tests, and cases of tests that apply otherwise. */
export const NOT_APPLICABLE: ReadonlyMap<string, number> = new Map(
  Object.entries(TABLE.reasons).map(([reason, text]) => [text, countOf(reason)]),
);

function countOf(verdict: string): number {
  const each = Object.values(TABLE.files).map(({ [verdict]: tests = 0 }) =>
    typeof tests === 'number' ? tests : tests.length,
  );
  return each.reduce((sum, count) => sum + count, 0);
}
