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
  const chosenFiles = all.filter(isFile).filter((job) => isChosenFile(job, all, choice));
  const rest = all.filter((job) => !isFile(job) && job.tier !== (choice.everything ? 'landing' : 'nightly'));
  const named = (job: Job) => choice.names.length === 0 || choice.names.some((name) => job.title.includes(name));
  const shared = chosenFiles.filter((file) => rest.some((job) => named(job) && takes(job, file)));
  const alone = all.filter((job) => isFile(job) && !shared.includes(job) && isWantedAlone(job, choice));
  const apart = all.filter((job) => !shared.includes(job)).flatMap((job) => fileOf(job) ?? []);
  return { jobs: [...rest.filter(named), ...alone], apart };
}

/** By its name, a file is played in either tier. */
function isWantedAlone(job: Job, { names }: Choice): boolean {
  return names.some((name) => job.title.includes(name));
}

function isChosenFile(job: Job, all: readonly Job[], { everything, changed, seed }: Choice): boolean {
  if (everything || changed === null) return true;
  if (job.folders!.some((folder) => changed.some((file) => isIn(file, folder)))) return true;
  if (changed.includes(fileInRepository(job))) return true;
  return draw(
    all.filter((each) => isFile(each) && !each.isLong),
    1,
    ({ title }) => title,
    seed,
  ).includes(job);
}

function isIn(file: string, folder: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

function fileInRepository(job: Job): string {
  return job.run.by === 'pytest' ? `gpu-worker/${job.run.file}` : fileOf(job)!;
}

/** The job of all files of the same runner that have none of their own. */
function takes({ run }: Job, { run: file }: Job): boolean {
  if (run.by === 'vitest' && file.by === 'vitest') return run.file === undefined && run.project === file.project;
  return run.by === 'pytest' && file.by === 'pytest' && run.file === undefined;
}

/** Files that differ from where the branch left `origin/main`, or from `base`, committed or not; null where there is neither. */
export function changedFiles(base: string | null): string[] | null {
  try {
    const from = base ?? git('merge-base', 'HEAD', 'origin/main')[0]!;
    return [...git('diff', '--name-only', from), ...git('ls-files', '--others', '--exclude-standard')];
  } catch {
    return null;
  }
}

function git(...args: string[]): string[] {
  const text = execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return text.split('\n').filter((line) => line !== '');
}
