/** `npm test`: checks and the tests of both languages, in four lanes; the last line counts them (each check counts as one). */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeFlags } from '../../workers/process/module-path.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { checks } from './checks.ts';
import { runStep, type Showing, type Step } from './command.ts';
import { readPytestReport, type Counts } from './pytest-report.ts';
import { describeTimings, readProcessorTime, withProcessorTime, type Timing } from './timings.ts';
import { openTools } from './tools.ts';

const { python, temporalCli, versitygw, chromium } = await openTools();
const tools = {
  TEMPER_PYTHON: python,
  TEMPER_TEMPORAL_CLI: temporalCli,
  TEMPER_VERSITYGW: await versitygw,
  ...(chromium !== null && { TEMPER_CHROMIUM: chromium }),
};
const results = mkdtempSync(join(tmpdir(), 'temper-results-'));
const env = { ...process.env, ...tools, ...keptBytecode() };
const NONE: Counts = { passed: 0, failed: 0, skipped: 0 };
const total: Counts = { ...NONE };
/** Said again at the end: of a long log, often its last page alone is kept. */
const failures: string[] = [];
const timings: Timing[] = [];
/** Runners say at their end what failed. */
const FAILURE_LINES = 60;

type Job = () => Promise<void>;

const DEMO = 'test/e2e/demo.test.ts';
const COPIES = 'test/e2e/copies.test.ts';
const NAIVE = 'test_against_naive.py';
const ofEngine = (file: string): string => `tests/engine/embedded/${file}`;
/** Tests that are run with perturbed rounding. */
const TRAINED = ['tests/training', ofEngine(NAIVE)];
const rounding = (seed: number): Record<string, string> => ({ TEMPER_ROUNDING: `${seed}` });
/** The longest first: what is short fills the end. Whole stacks wait half of their time, for others to compute. */
const jobs: Job[] = [
  () => runVitest('crash', 'at its end'),
  () => runPytestOf('tests of Python', [], {}, 'at its end'),
  () => runVitest('installation', 'at once'),
  () => runCrashes('at its end'),
  () => runVitest('e2e', 'at its end', [DEMO]),
  () => runVitest('unit', 'at its end'),
  () => runVitest('browser', 'at its end'),
  () => runVitest('workflows', 'at its end'),
  ...(process.arch === 'x64' ? [() => runNarrow('at its end')] : [1, 2].map(runRounding)),
  () => runVitest('e2e', 'at its end', [COPIES]),
  () => runVitest('e2e', 'at its end', ['--exclude', DEMO, '--exclude', COPIES]),
  runRounding(3),
  () => runChecks('at its end'),
];
/** On two cores, three of them left a tenth of the processor time unused. */
const LANES = 4;

await Promise.all(Array.from({ length: LANES }, work));
rmSync(results, { recursive: true });
for (const failure of failures) console.log(failure);
for (const line of ['', ...describeTimings(timings)]) console.log(line);
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 ? 0 : 1);

/**
 * Compiled Python modules, which many images for containers do not keep: compiling them takes half of each start of a GPU
 * worker, and the suite starts about a hundred Python processes. They are kept from one run to the next, because each of
 * the first processes, which start together, would compile all of them. Python compares them with their sources.
 */
function keptBytecode(): Record<string, string> {
  if (!process.env['PYTHONDONTWRITEBYTECODE']) return {};
  return { PYTHONDONTWRITEBYTECODE: '', PYTHONPYCACHEPREFIX: join(cacheFolder(), 'bytecode') };
}

async function work(): Promise<void> {
  for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) await job();
}

async function runChecks(showing: Showing): Promise<void> {
  for (const check of checks(python)) {
    add((await run(check, env, showing)) ? { ...NONE, passed: 1 } : { ...NONE, failed: 1 });
  }
}

/**
 * Numeric tests once more with fewer instructions than the processor has: another one has other kernels. Gradients and
 * log-probabilities also as processors that nobody here has might add them up (tests/rounding.py): each kernel computes
 * two parts of a product, which are added. What the engine promises of a row's bits is tested with products in one piece.
 */
async function runNarrow(showing: Showing): Promise<void> {
  const narrow = narrowInstructions();
  await runNumerics('engine and server with AVX2 alone', ['tests/engine', 'tests/server'], narrow, showing);
  await runNumerics('trainer with AVX2 alone and rounding 1', TRAINED, { ...narrow, ...rounding(1) }, showing);
  const oldest = { ATEN_CPU_CAPABILITY: 'default', ONEDNN_MAX_CPU_ISA: 'SSE41' };
  await runNumerics('engine without AVX', ['test_batch_invariance.py', NAIVE].map(ofEngine), oldest, showing);
  await runNumerics('trainer without AVX and with rounding 2', TRAINED, { ...oldest, ...rounding(2) }, showing);
}

function runRounding(seed: number): Job {
  return () => runNumerics(`trainer with rounding ${seed}`, TRAINED, rounding(seed), 'at its end');
}

function runNumerics(
  what: string,
  files: readonly string[],
  limits: Readonly<Record<string, string>>,
  showing: Showing,
): Promise<void> {
  return runPytestOf(`numbers of ${what}`, ['-m', 'numerics', ...files], limits, showing);
}

/** Those that a GPU worker falls back to. */
function narrowInstructions(): Record<string, string> {
  const program = 'import json; from temper_gpu.model.instructions import NARROW; print(json.dumps(NARROW))';
  return JSON.parse(execFileSync(python, ['-c', program], { cwd: 'gpu-worker', encoding: 'utf8' }));
}

async function runPytestOf(
  title: string,
  selection: readonly string[],
  limits: Readonly<Record<string, string>>,
  showing: Showing,
): Promise<void> {
  const report = join(results, `${title}.xml`);
  const command = [python, '-m', 'pytest', '-q', `--junitxml=${report}`, ...selection] as const;
  const succeeded = await run({ title, command, cwd: 'gpu-worker' }, { ...env, ...limits }, showing);
  addSuite(succeeded, () => readPytestReport(report));
}

/** `selection`: files of the project, or which to leave out. */
async function runVitest(project: string, showing: Showing, selection: readonly string[] = []): Promise<void> {
  const report = join(mkdtempSync(join(results, project)), 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const title = ['tests:', project, ...selection].join(' ');
  const command = ['vitest', 'run', '--project', project, ...selection, ...reporters] as const;
  const succeeded = await run({ title, command }, env, showing);
  addSuite(succeeded, () => {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
  });
}

async function runCrashes(showing: Showing): Promise<void> {
  const report = join(results, 'crash.json');
  const command = [process.execPath, ...nodeFlags(), 'test/crash/run.ts', '--report', report] as const;
  const succeeded = await run({ title: 'crash suite, slice', command }, env, showing);
  addSuite(succeeded, () => {
    const { points, good } = JSON.parse(readFileSync(report, 'utf8')) as { points: number; good: number };
    return { passed: good, failed: points - good, skipped: 0 };
  });
}

async function run(step: Step, variables: NodeJS.ProcessEnv, showing: Showing): Promise<boolean> {
  const file = join(results, `${timings.length}-${step.title.replaceAll('/', ' ')}.seconds`);
  const { succeeded, output, seconds } = await runStep(withProcessorTime(step, python, file), variables, showing);
  timings.push({ title: step.title, seconds, processorSeconds: readProcessorTime(file) });
  if (!succeeded) {
    const lines = output.trimEnd().split('\n').slice(-FAILURE_LINES);
    failures.push([`\n── failed: ${step.title}`, ...lines].join('\n'));
  }
  return succeeded;
}

/** A suite that failed without a failed test (it did not start, say) counts as one failure. */
function addSuite(succeeded: boolean, read: () => Counts): void {
  let counts: Counts = NONE;
  try {
    counts = read();
  } catch (error) {
    console.log(`no test report: ${String(error)}`);
    succeeded = false;
  }
  add(!succeeded && counts.failed === 0 ? { ...counts, failed: 1 } : counts);
}

function add(counts: Counts): void {
  total.passed += counts.passed;
  total.failed += counts.failed;
  total.skipped += counts.skipped;
}
