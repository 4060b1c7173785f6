/**
 * `npm run test:mutants [NAME]`: breaks one line after the other in copies of the working tree, and runs the test that
 * must notice, in the tier that the mutant names. The tree itself is never touched. Exit 1 where a mutant survives.
 * `-- --draw` plays a few mutants of fast tests, others for each tree; `-- --report FILE` writes the counts as JSON.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { parseArgs } from 'node:util';

import { draw } from '../run/tier.ts';
import { openTools, variablesOf } from '../run/tools.ts';
import { SHARED_SERVER_VARIABLE, startTestServer, type TestServer } from '../temporal-server.ts';
import type { Mutant } from './mutant.ts';
import { playerOf, Players, UNBROKEN, type Batch } from './players.ts';
import { MUTANTS, mutate } from './table.ts';

interface Result {
  readonly mutant: Mutant;
  readonly outcome: 'caught' | 'timed out' | 'SURVIVED' | 'BROKEN';
  readonly output: string;
}

const ROOT = join(import.meta.dirname, '../..');
const MAX_LANES = 2;
/** How many `--draw` plays: about two minutes of processor time. */
const DRAWN = 7;
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

const { values, positionals } = parseArgs({
  options: { draw: { type: 'boolean' }, report: { type: 'string' } },
  allowPositionals: true,
});
const [only] = positionals;
const tools = await openTools();
const players = new Players(tools.python, { ...variablesOf(tools), TEMPER_VERSITYGW: await tools.versitygw });
const lanes: string[] = [];
let server: TestServer | null = null;
process.once('SIGINT', () => stop(130));
process.once('SIGTERM', () => stop(143));

const results = await runAll(chooseMutants());
const caught = results?.filter(({ outcome }) => outcome === 'caught' || outcome === 'timed out').length ?? 0;
if (values.report !== undefined) {
  // A run that did not come to its mutants counts as one failure.
  const counts = { passed: caught, failed: results === null ? 1 : results.length - caught, skipped: 0 };
  writeFileSync(values.report, JSON.stringify(counts));
}
process.exit(results !== null && caught === results.length ? 0 : 1);

function chooseMutants(): readonly Mutant[] {
  if (only !== undefined) return MUTANTS.filter(({ name, file }) => name.includes(only) || file.includes(only));
  if (values.draw !== true) return MUTANTS;
  const isFast = (mutant: Mutant): boolean =>
    mutant.tier !== 'nightly' && ['unit', 'pytest'].includes(playerOf(mutant.test));
  return draw(MUTANTS.filter(isFast), DRAWN, ({ name }) => name);
}

/** Null if tests fail as they are. */
async function runAll(mutants: readonly Mutant[]): Promise<Result[] | null> {
  // An anchor that is gone is told before anything takes time.
  for (const mutant of mutants) mutate(await readFile(join(ROOT, mutant.file), 'utf8'), mutant);
  if (mutants.length === 0) throw new Error(`no mutant has ${only} in its name or file`);
  try {
    for (let lane = 0; lane < Math.min(MAX_LANES, availableParallelism(), mutants.length); lane++) await copyTree();
    // All mutants of workflows have one: its start takes as long as most of their tests.
    if (mutants.some(({ test }) => playerOf(test) === 'workflows')) server = await startTestServer();
    if (server !== null) players.env[SHARED_SERVER_VARIABLE] = server.address;
    // A draw is part of a landing, which plays all these tests unbroken.
    if (values.draw !== true && !(await passUnbroken(mutants))) return null;
    return tell(await playAll(mutants));
  } finally {
    players.stop();
    await server?.stop();
    for (const path of lanes.flatMap((lane) => [lane, `${lane}.log`])) await rm(path, { recursive: true, force: true });
  }
}

async function copyTree(): Promise<void> {
  const lane = await mkdtemp(join(tmpdir(), 'temper-mutants-'));
  lanes.push(lane);
  const isCopied = (path: string) =>
    !relative(ROOT, path)
      .split(sep)
      .some((part) => NOT_COPIED.has(part));
  await cp(ROOT, lane, { recursive: true, filter: isCopied });
  await symlink(join(ROOT, 'node_modules'), join(lane, 'node_modules'));
}

/** A test that fails anyway would catch every mutant. */
async function passUnbroken(mutants: readonly Mutant[]): Promise<boolean> {
  const batches = new Map<string, Batch>();
  for (const { test, tier = 'landing' } of mutants) {
    const player = playerOf(test);
    const files = batches.get(`${player} ${tier}`)?.files ?? [];
    batches.set(`${player} ${tier}`, { player, tier, files: [...new Set([...files, test])] });
  }
  const count = [...batches.values()].reduce((sum, { files }) => sum + files.length, 0);
  console.log(`${mutants.length} mutants; first their ${count} test files as they are`);
  const failed = await inLanes([...batches.values()], async (lane, batch) => {
    const { verdict, output } = await players.play(lane, batch, UNBROKEN);
    return verdict === 'passed' ? [] : [`tests must pass before anything is broken, these do not:\n${output}`];
  });
  for (const message of failed.flat()) console.error(message);
  return failed.flat().length === 0;
}

function playAll(mutants: readonly Mutant[]): Promise<Result[]> {
  return inLanes(mutants, async (lane, mutant) => {
    const { test, title, tier = 'landing' } = mutant;
    const file = join(lane, mutant.file);
    const text = await readFile(file, 'utf8');
    const startedAt = Date.now();
    await writeFile(file, mutate(text, mutant));
    const { verdict, output } = await players.play(lane, { player: playerOf(test), tier, files: [test], title });
    await writeFile(file, text);
    const outcome = ({ passed: 'SURVIVED', failed: 'caught', late: 'timed out', broken: 'BROKEN' } as const)[verdict];
    const seconds = (Date.now() - startedAt) / 1000;
    console.log(`${outcome.padEnd(9)}  ${seconds.toFixed(0).padStart(3)} s  ${mutant.file}: ${mutant.name}`);
    return { mutant, outcome, output };
  });
}

/** Each lane takes the next item when it is free. */
async function inLanes<T, R>(items: readonly T[], play: (lane: string, item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  const left = items.entries();
  await Promise.all(
    lanes.map(async (lane) => {
      for (const [index, item] of left) done[index] = await play(lane, item);
    }),
  );
  return done;
}

function stop(code: number): never {
  players.stop();
  // Its signal is sent at once.
  void server?.stop();
  for (const path of lanes.flatMap((lane) => [lane, `${lane}.log`])) rmSync(path, { recursive: true, force: true });
  process.exit(code);
}

function tell(played: Result[]): Result[] {
  const missed = played.filter(({ outcome }) => outcome === 'SURVIVED' || outcome === 'BROKEN');
  for (const { mutant, outcome, output } of missed) {
    console.log(`\n${outcome}: ${mutant.file}: ${mutant.name} (by ${mutant.test})`);
    if (outcome === 'BROKEN') console.log(output.slice(-2000));
  }
  console.log(`\n${played.length - missed.length} of ${played.length} caught`);
  return played;
}
