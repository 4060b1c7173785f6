/**
 * The suite: what is played, when and how. `npm test` plays the jobs of `landing` and `both`; `npm run test:all` those of
 * `both` and `nightly`. A nightly job with folders is a file of tests, which a landing plays as well if it changes one of
 * these folders, or if its tree draws it (select.ts).
 */
import { join, relative } from 'node:path';
import type { Limits } from './instructions.ts';
import { projectOf } from './projects.ts';

export type Run =
  /** A file of a Vitest project, or all of its files that have no row. */
  | { readonly by: 'vitest'; readonly project: string; readonly file?: string }
  /** A file or a folder of `gpu-worker/`, or all that has no row. */
  | { readonly by: 'pytest'; readonly file?: string }
  /** Numeric tests of `gpu-worker/`, again with fewer instructions of the processor or another rounding. */
  | { readonly by: 'numbers'; readonly files: readonly string[]; readonly limits: Limits }
  | { readonly by: 'checks' }
  /** A program; after `--report` it is given a file for its counts. */
  | { readonly by: 'program'; readonly script: string; readonly args: readonly string[]; readonly reports: boolean };

export interface Job {
  readonly title: string;
  readonly tier: 'landing' | 'both' | 'nightly';
  /** Of the repository. A change in one of them has a landing play the job, which is nightly otherwise. */
  readonly folders?: readonly string[];
  readonly run: Run;
  /** It takes minutes: a landing plays it for a change in its folders, and never by the tree's hash alone. */
  readonly isLong?: true;
  /** It waits for the S3 server, which an empty cache has built first. */
  readonly needsS3?: true;
  /** Then it is ended, with all its processes. */
  readonly limitMinutes?: number;
}

const GPU = 'gpu-worker/temper_gpu';
const engine = (file: string): string => join('tests/engine/embedded', file);
const NAIVE = engine('test_against_naive.py');
const INVARIANCE = engine('test_batch_invariance.py');
/** Tests that are run with perturbed rounding. */
const TRAINED = ['tests/training', NAIVE];

const vitest = (title: string, project: string, options: { file?: string; needsS3?: true } = {}): Job => {
  const { file, ...others } = options;
  return { title, tier: 'both', run: { by: 'vitest', project, ...(file !== undefined && { file }) }, ...others };
};

const numbers = (tier: Job['tier'], of: string, files: readonly string[], limits: Limits): Job => ({
  title: `numbers of ${of}`,
  tier,
  run: { by: 'numbers', files, limits },
});

const long = (job: Job): Job => ({ ...job, isLong: true });

/** A file that is played at night, and by landings that change what it guards. */
const nightly = (file: string, ...folders: string[]): Job => ({
  title: file,
  tier: 'nightly',
  folders,
  run: file.endsWith('.py')
    ? { by: 'pytest', file: relative('gpu-worker', file) }
    : { by: 'vitest', project: projectOf(file), file },
});

const program = (
  title: string,
  script: string,
  options: Partial<Job> & { args?: readonly string[]; reports?: boolean },
): Job => {
  const { args = [], reports = false, ...others } = options;
  return { title, tier: 'nightly', run: { by: 'program', script, args, reports }, ...others };
};

const ALL_SCENES = { args: ['--all'], reports: true, needsS3: true, limitMinutes: 240 } as const;

/** The longest first, as what is short fills the end. */
export const JOBS: readonly Job[] = [
  program('crash scenes, all', 'test/crash/run.ts', ALL_SCENES),
  vitest('unit', 'unit', { needsS3: true }),
  { title: 'Python', tier: 'both', run: { by: 'pytest' }, needsS3: true },
  vitest('installation', 'installation'),
  vitest('workflows', 'workflows'),
  vitest('crash', 'crash'),
  { title: 'Python, the engine', tier: 'both', run: { by: 'pytest', file: 'tests/engine' } },
  vitest('demo', 'e2e', { file: 'test/e2e/demo.test.ts' }),
  program('crash scenes, a slice', 'test/crash/run.ts', { tier: 'landing', reports: true, needsS3: true }),
  program('mutants', 'test/mutants/run.ts', { reports: true, needsS3: true, limitMinutes: 180 }),
  vitest('pages', 'browser'),
  vitest('e2e', 'e2e', { needsS3: true }),
  numbers('both', 'the trainer, with AVX2 alone and rounding 1', TRAINED, { instructions: 'narrow', rounding: 1 }),
  numbers('both', 'invariance, with AVX2 alone', [INVARIANCE], { instructions: 'narrow' }),
  numbers('nightly', 'engine and server, with AVX2 alone', ['tests/engine', 'tests/server'], {
    instructions: 'narrow',
  }),
  numbers('nightly', 'the engine, without AVX', [INVARIANCE, NAIVE], { instructions: 'oldest' }),
  numbers('nightly', 'the trainer, without AVX and with rounding 2', TRAINED, { instructions: 'oldest', rounding: 2 }),
  numbers('nightly', 'the trainer, with rounding 3', TRAINED, { rounding: 3 }),
  program('mutants, a draw', 'test/mutants/run.ts', {
    tier: 'landing',
    args: ['--draw'],
    reports: true,
    needsS3: true,
  }),
  program('pages of a live run that is killed', 'test/crash/live-ui/run.ts', { limitMinutes: 60 }),
  program('trackers that are killed', 'test/crash/trackers.ts', { limitMinutes: 60 }),
  program("llama.cpp's server", 'test/llama-server/run.ts', { limitMinutes: 60 }),
  program("vLLM's tests of its server", 'test/vllm-api/run.ts', { limitMinutes: 60 }),
  { title: 'checks', tier: 'both', run: { by: 'checks' } },

  nightly('test/cli/init-task/kill.test.ts', 'cli/init', 'cli/scenarios'),
  nightly('test/cli/scenarios/scenarios-kill.test.ts', 'cli/scenarios'),
  nightly('test/crash/frozen.test.ts', 'workers/worker', `${GPU}/temporal`),
  nightly('test/crash/full-disk.test.ts', 'store/bytes', `${GPU}/store`),
  nightly('test/crash/hub-model.test.ts', `${GPU}/model/hub.py`, 'workers/base-models'),
  nightly('test/crash/judging.test.ts', 'activities/judge.ts', 'play/judge'),
  nightly('test/crash/not-finite.test.ts', 'workflows/endings.ts', `${GPU}/training/step.py`),
  nightly('test/crash/production.test.ts', 'cli/schedule', 'operations'),
  nightly('test/crash/program.test.ts', 'play/programs'),
  nightly('test/crash/resources.test.ts', 'play/resources'),
  nightly('test/crash/supervised.test.ts', 'cli/planning', `${GPU}/training/supervised.py`),
  nightly('test/e2e/copies.test.ts', 'store/records/copy', 'operations'),
  long(nightly('test/installation/frameworks.test.ts', 'play/dialects', 'play/transports', 'play/recorder')),
  nightly('test/installation/page-scripts.test.ts', 'sdk/loop', 'workers/local-backend'),
  long(nightly('test/installation/trained-examples.test.ts', 'examples/multiplication', 'examples/email-search')),
  long(nightly('test/installation/trained-pages.test.ts', 'sdk/agent', 'play/resources', 'play/mcp')),
  nightly('test/installation/use-what-you-trained.test.ts', 'cli/serve', 'cli/export', 'docs/use-what-you-trained.md'),
  nightly('test/real-model/real-model.test.ts', 'test/real-model'),
  nightly('gpu-worker/tests/process/test_export.py', `${GPU}/process/export.py`, `${GPU}/commits`),
  nightly('gpu-worker/tests/process/test_planned_passes.py', `${GPU}/process`, `${GPU}/engine/vllm`),
  nightly('gpu-worker/tests/training/test_adamw_8bit.py', `${GPU}/training/optimizers.py`),
  nightly('gpu-worker/tests/training/test_killed_ranks.py', `${GPU}/training/ranks`, `${GPU}/commits`),
  long(nightly('test/workflows/long-run.test.ts', 'workflows')),
];
