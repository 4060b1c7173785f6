/**
 * `npm run test:mutants [NAME]`: breaks one line after the other in copies of the working tree, and runs the test that
 * must notice. The tree itself is never touched. Exit 1 where a mutant survives.
 */
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { once } from 'node:events';

import { openTools } from '../run/tools.ts';
import type { Mutant } from './mutant.ts';
import { MUTANTS, mutate } from './table.ts';

type Verdict = 'passed' | 'failed' | 'broken';

interface Result {
  readonly mutant: Mutant;
  readonly outcome: 'caught' | 'SURVIVED' | 'BROKEN';
  readonly seconds: number;
  readonly output: string;
}

const ROOT = join(import.meta.dirname, '../..');
const MAX_LANES = 2;
const TEST_WITHIN_MS = 300_000;
/** Neither code nor tests. */
const NOT_COPIED = new Set([
  'node_modules',
  '.git',
  '.temper',
  '__pycache__',
  '.pytest_cache',
  'pictures',
  'histories',
]);

const isPython = (test: string): boolean => test.endsWith('.py');
const PYTEST = ['-m', 'pytest', '-x', '-q', '-p', 'no:cacheprovider'];
const VITEST = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', '--reporter', 'json'];

const { python } = await openTools();
const only = process.argv[2];
const chosen = MUTANTS.filter(({ name }) => only === undefined || name.includes(only));
process.exitCode = (await runAll(chosen)) ? 0 : 1;

async function runAll(mutants: readonly Mutant[]): Promise<boolean> {
  const lanes = await Promise.all(
    Array.from({ length: Math.min(MAX_LANES, availableParallelism(), mutants.length) }, copyTree),
  );
  try {
    // An anchor that is gone is told before anything takes time.
    for (const mutant of mutants) mutate(await readFile(join(ROOT, mutant.file), 'utf8'), mutant);
    if (!(await passUnbroken(lanes, mutants))) return false;
    return report(await playAll(lanes, mutants));
  } finally {
    for (const lane of lanes) await rm(lane, { recursive: true, force: true });
  }
}

async function copyTree(): Promise<string> {
  const lane = await mkdtemp(join(tmpdir(), 'temper-mutants-'));
  const isCopied = (path: string) =>
    !relative(ROOT, path)
      .split(sep)
      .some((part) => NOT_COPIED.has(part));
  await cp(ROOT, lane, { recursive: true, filter: isCopied });
  await symlink(join(ROOT, 'node_modules'), join(lane, 'node_modules'));
  return lane;
}

/** A test that fails anyway would catch every mutant. */
async function passUnbroken(lanes: readonly string[], mutants: readonly Mutant[]): Promise<boolean> {
  const tests = [...new Set(mutants.map(({ test }) => test))];
  const byLanguage = [tests.filter(isPython), tests.filter((test) => !isPython(test))].filter(
    ({ length }) => length > 0,
  );
  console.log(`${mutants.length} mutants; first their ${tests.length} test files as they are`);
  const failed = await inLanes(lanes, byLanguage, async (lane, files) => {
    const { verdict, output } = await runTests(lane, files);
    return verdict === 'passed' ? [] : [`tests must pass before anything is broken, these do not:\n${output}`];
  });
  for (const message of failed.flat()) console.error(message);
  return failed.flat().length === 0;
}

function playAll(lanes: readonly string[], mutants: readonly Mutant[]): Promise<Result[]> {
  return inLanes(lanes, mutants, async (lane, mutant) => {
    const file = join(lane, mutant.file);
    const text = await readFile(file, 'utf8');
    const startedAt = Date.now();
    await writeFile(file, mutate(text, mutant));
    const { verdict, output } = await runTests(lane, [mutant.test]);
    await writeFile(file, text);
    const outcome = ({ passed: 'SURVIVED', failed: 'caught', broken: 'BROKEN' } as const)[verdict];
    const seconds = (Date.now() - startedAt) / 1000;
    console.log(`${outcome.padEnd(8)}  ${seconds.toFixed(0).padStart(3)} s  ${mutant.file}: ${mutant.name}`);
    return { mutant, outcome, seconds, output };
  });
}

/** Each lane takes the next item when it is free. */
async function inLanes<T, R>(
  lanes: readonly string[],
  items: readonly T[],
  play: (lane: string, item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const left = items.entries();
  await Promise.all(
    lanes.map(async (lane) => {
      for (const [index, item] of left) results[index] = await play(lane, item);
    }),
  );
  return results;
}

/** Files of one language. `broken`: not one test failed, but they could not be run. */
async function runTests(lane: string, tests: readonly string[]): Promise<{ verdict: Verdict; output: string }> {
  const ofPython = tests.every(isPython);
  const [program, args] = ofPython
    ? [python, [...PYTEST, ...tests.map((test) => relative('gpu-worker', test))]]
    : [process.execPath, [...VITEST, ...tests]];
  const cwd = ofPython ? join(lane, 'gpu-worker') : lane;
  // Compiled Python is told apart by its second and its size: a mutant may have both in common with the original.
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1' };
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => printed.push(chunk));
  const timer = setTimeout(() => child.kill('SIGKILL'), TEST_WITHIN_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  const output = Buffer.concat(printed).toString('utf8');
  if (code === 0) return { verdict: 'passed', output };
  const hasFailed = ofPython ? code === 1 : /"numFailedTests":[1-9]/.test(output);
  return { verdict: hasFailed ? 'failed' : 'broken', output };
}

function report(results: readonly Result[]): boolean {
  const missed = results.filter(({ outcome }) => outcome !== 'caught');
  for (const { mutant, outcome, output } of missed) {
    console.log(`\n${outcome}: ${mutant.file}: ${mutant.name} (by ${mutant.test})`);
    if (outcome === 'BROKEN') console.log(output.slice(-2000));
  }
  console.log(`\n${results.length - missed.length} of ${results.length} caught`);
  return missed.length === 0;
}
