/** Which jobs are played now: by tier, by what a change touches, by the tree's hash, by name. */
import { execFileSync } from 'node:child_process';
import type { Job } from './jobs.ts';
import { draw } from './tier.ts';

export interface Choice {
  readonly everything: boolean;
  /** Files of the change; null where nothing says what has changed. */
  readonly changed: readonly string[] | null;
  /** Draws one nightly file. */
  readonly seed: string;
  /** Parts of titles; none: all jobs. */
  readonly names: readonly string[];
}

export interface Selected {
  readonly jobs: readonly Job[];
  /** Files with a job of their own, played or not: the job of their project leaves them out. */
  readonly apart: readonly string[];
}

const isFile = ({ folders }: Job): boolean => folders !== undefined;
const fileOf = ({ run }: Job): string | null => ('file' in run ? (run.file ?? null) : null);

/**
 * A nightly file that is chosen is played by its project's job, which shares a stack. Where the names leave that job
 * out, it has one of its own.
 */
export function selectJobs(all: readonly Job[], choice: Choice): Selected {
  const drawn = draw(
    all.filter((job) => isFile(job) && !job.isLong),
    1,
    ({ title }) => title,
    choice.seed,
  );
  const chosenFiles = all.filter(isFile).filter((job) => drawn.includes(job) || isChosenFile(job, choice));
  const rest = all.filter((job) => !isFile(job) && job.tier !== (choice.everything ? 'landing' : 'nightly'));
  const isNamed = ({ title }: Job) => choice.names.some((name) => title.includes(name));
  const played = rest.filter((job) => choice.names.length === 0 || isNamed(job));
  const shared = chosenFiles.filter((file) => played.some((job) => takes(job, file)));
  const alone = all.filter((job) => isFile(job) && !shared.includes(job) && isNamed(job));
  const apart = all.filter((job) => !shared.includes(job)).flatMap((job) => fileOf(job) ?? []);
  const jobs = [...played, ...alone];
  if (jobs.length === 0)
    throw new TypeError(
      `no job has ${choice.names.join(' or ')} in its title; test/run/jobs.ts lists them, and the nightly ones need --all`,
    );
  return { jobs, apart };
}

function isChosenFile(job: Job, { everything, changed }: Choice): boolean {
  if (everything || changed === null) return true;
  if (job.folders!.some((folder) => changed.some((file) => isIn(file, folder)))) return true;
  return changed.includes(fileInRepository(job));
}

function isIn(file: string, folder: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

function fileInRepository(job: Job): string {
  return job.run.by === 'pytest' ? `gpu-worker/${job.run.file}` : fileOf(job)!;
}

/** The job of all files of the same runner, or of the same folder, that have none of their own. */
function takes({ run }: Job, { run: file }: Job): boolean {
  if (run.by === 'vitest' && file.by === 'vitest') return run.file === undefined && run.project === file.project;
  if (run.by !== 'pytest' || file.by !== 'pytest') return false;
  return run.file === undefined || isIn(file.file!, run.file);
}

/**
 * Files that differ from where the branch left `origin/main`, or from `base`, committed or not; null where there is no
 * `origin/main`. Throws if `base` is no revision.
 */
export function changedFiles(base: string | null): string[] | null {
  let from: string;
  try {
    from = git(
      'rev-parse',
      '--verify',
      '--quiet',
      `${base ?? git('merge-base', 'HEAD', 'origin/main')[0]}^{commit}`,
    )[0]!;
  } catch (error) {
    if (base === null) return null;
    throw new TypeError(`--base must be a revision of this repository, got ${base}`, { cause: error });
  }
  return [...git('diff', '--name-only', from), ...git('ls-files', '--others', '--exclude-standard')];
}

function git(...args: string[]): string[] {
  const text = execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return text.split('\n').filter((line) => line !== '');
}
