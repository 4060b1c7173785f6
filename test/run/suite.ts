/** Plays jobs in lanes, adds up what they report, and leaves no process and no file behind. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeFlags } from '../../workers/process/module-path.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { useCompiledCode } from '../compiled.ts';
import { checks } from './checks.ts';
import { runStep, type Step } from './command.ts';
import { limitedBy } from './instructions.ts';
import type { Job } from './jobs.ts';
import { projectOf } from './projects.ts';
import {
  countOne,
  readProgramReport,
  readPytestReport,
  readVitestReport,
  type FileTime,
  type Report,
} from './reports.ts';
import { isNightly } from './tier.ts';
import { readProcessorTime, withProcessorTime, type Timing } from './timings.ts';
import { variablesOf, type Tools } from './tools.ts';

/** On two cores, three of them left a tenth of the processor time unused: whole stacks wait half of their time. */
const LANES = 4;
/** Three times what the longest job of a landing, or of a night, takes beside four busy processes. */
const LIMIT_MINUTES = { landing: 45, nightly: 180 };
/**
 * Models of tests are so small that a second thread costs a seventh more than it saves. Tests of threads set their number
 * themselves, and the numeric ones are played again with all.
 */
const ONE_THREAD = { OMP_NUM_THREADS: '1' };
/** Runners say at their end what failed. */
const FAILURE_LINES = 60;

interface Played extends Step {
  readonly env?: Record<string, string>;
  readonly read: (succeeded: boolean) => Report;
}

export class Suite {
  /** Said again at the end: of a long log, often its last page alone is kept. */
  readonly failures: string[] = [];
  readonly timings: Timing[] = [];
  readonly files: FileTime[] = [];
  readonly total = { passed: 0, failed: 0, skipped: 0 };
  readonly #tools: Tools;
  readonly #apart: readonly string[];
  /** Of reports and, for all that is started, the folder of temporary files. Paths of sockets must stay short. */
  readonly #folder = mkdtempSync(join(tmpdir(), 'temper-'));
  readonly #stopped = new AbortController();

  /** `apart`: files with a row of their own, which the job of all others leaves out. */
  constructor(tools: Tools, apart: readonly string[]) {
    this.#tools = tools;
    this.#apart = apart;
    const temporary = join(this.#folder, 't');
    // Some tests act as other users.
    chmodSync(this.#folder, 0o755);
    mkdirSync(temporary);
    chmodSync(temporary, 0o1777);
    // For all that is started, and for what this process makes.
    Object.assign(process.env, { TMPDIR: temporary }, variablesOf(tools), keptBytecode());
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  async play(jobs: readonly Job[]): Promise<void> {
    const left = [...jobs];
    if (jobs.some(({ run }) => run.by === 'vitest' || run.by === 'program')) await useCompiledCode();
    const work = async () => {
      for (let job = left.shift(); job !== undefined && !this.isStopped; job = left.shift()) await this.#play(job);
    };
    await Promise.all(Array.from({ length: LANES }, work));
  }

  /** Ends what is played, with all its processes. */
  stop(): void {
    this.#stopped.abort();
  }

  close(): void {
    for (const place of mountedBelow(this.#folder)) execFileSync('umount', [place]);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #play(job: Job): Promise<void> {
    const limitMinutes = job.limitMinutes ?? LIMIT_MINUTES[isNightly() ? 'nightly' : 'landing'];
    const needed = job.needsS3 ? { TEMPER_VERSITYGW: await this.#tools.versitygw } : {};
    for (const [index, step] of this.#stepsOf(job).entries()) {
      if (this.isStopped) return;
      const file = join(this.#folder, `${job.title.replaceAll('/', ' ')}-${index}.seconds`);
      const counted = withProcessorTime(step, this.#tools.python, file);
      const running = { showing: 'at its end', limitMinutes, signal: this.#stopped.signal } as const;
      const { succeeded, output, seconds } = await runStep(
        counted,
        { ...process.env, ...needed, ...step.env },
        running,
      );
      this.timings.push({ title: step.title, seconds, processorSeconds: readProcessorTime(file) });
      if (!this.isStopped) this.#add(step, succeeded, output);
    }
  }

  /** A suite that failed without a failed test (it did not start, say) counts as one failure. */
  #add({ title, read }: Played, succeeded: boolean, output: string): void {
    let report: Report = { passed: 0, failed: 0, skipped: 0, files: [] };
    try {
      report = read(succeeded);
    } catch (error) {
      this.failures.push(`\n── no report: ${title}: ${String(error)}`);
      succeeded = false;
    }
    const failed = succeeded || report.failed > 0 ? report.failed : 1;
    this.total.passed += report.passed;
    this.total.failed += failed;
    this.total.skipped += report.skipped;
    this.files.push(...report.files);
    if (failed === 0) return;
    const lines = output.trimEnd().split('\n').slice(-FAILURE_LINES);
    this.failures.push([`\n── failed: ${title}`, ...lines].join('\n'));
  }

  #stepsOf({ title, run }: Job): readonly Played[] {
    const report = join(this.#folder, `${title.replaceAll('/', ' ')}.report`);
    if (run.by === 'checks') return checks(this.#tools.python).map((step) => ({ ...step, read: countOne }));
    if (run.by === 'vitest') return [this.#vitest(title, run.project, run.file, report)];
    if (run.by === 'pytest') {
      const env = isNightly() ? {} : ONE_THREAD;
      const own = run.file === undefined ? [] : [run.file];
      const others = this.#apart.filter((other) => !other.endsWith('.ts') && other !== run.file);
      const selection = [...own, ...others.map((other) => `--ignore=${other}`)];
      return [{ ...this.#pytest(title, selection, report), env }];
    }
    if (run.by === 'numbers') {
      const env = limitedBy(run.limits, this.#tools.python);
      return [{ ...this.#pytest(title, ['-m', 'numerics', ...run.files], report), env }];
    }
    const flags = run.reports ? ['--report', report] : [];
    const command = [process.execPath, ...nodeFlags(), run.script, ...run.args, ...flags] as const;
    return [{ title, command, read: (succeeded) => readProgramReport(report, succeeded) }];
  }

  #vitest(title: string, project: string, file: string | undefined, report: string): Played {
    const others = this.#apart.filter((other) => other.endsWith('.ts') && projectOf(other) === project);
    const files = file === undefined ? others.flatMap((other) => ['--exclude', other]) : [file];
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const command = ['vitest', 'run', '--project', project, ...files, ...reporters] as const;
    return { title, command, read: () => readVitestReport(report) };
  }

  #pytest(title: string, selection: readonly string[], report: string): Played {
    const command = [this.#tools.python, '-m', 'pytest', '-q', `--junitxml=${report}`, ...selection] as const;
    return { title, command, cwd: 'gpu-worker', read: () => readPytestReport(report) };
  }
}

/** A disk of a test that was ended. */
function mountedBelow(folder: string): string[] {
  if (process.platform !== 'linux') return [];
  const places = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return places.map((line) => line.split(' ')[1] ?? '').filter((place) => place.startsWith(`${folder}/`));
}

/**
 * Compiled Python modules, which many images for containers do not keep: compiling them takes half of each start of a GPU
 * worker, and the suite starts about a hundred Python processes. They are kept from one run to the next, because each of
 * the first processes, which start together, would compile all of them. Python compares them with their sources.
 */
function keptBytecode(): Record<string, string> {
  if (!process.env['PYTHONDONTWRITEBYTECODE']) return {};
  return { PYTHONDONTWRITEBYTECODE: '', PYTHONPYCACHEPREFIX: join(cacheFolder(), 'bytecode') };
}
