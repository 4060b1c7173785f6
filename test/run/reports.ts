/** What the runners' reports say: counts, and the time of each file. */
import { existsSync, readFileSync } from 'node:fs';

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface FileTime {
  readonly file: string;
  readonly seconds: number;
}

export interface Report extends Counts {
  readonly files: readonly FileTime[];
}

/** Of `--reporter=json`. */
export function readVitestReport(file: string, root = process.cwd()): Report {
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(readFileSync(file, 'utf8'));
  const files = (testResults as { name: string; startTime: number; endTime: number }[]).map((result) => ({
    file: result.name.replace(`${root}/`, ''),
    seconds: (result.endTime - result.startTime) / 1000,
  }));
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests, files };
}

/** Of `--junitxml`. */
export function readPytestReport(file: string): Report {
  const text = readFileSync(file, 'utf8');
  const suite = /<testsuite [^>]*>/.exec(text)?.[0] ?? '';
  const count = (name: string) => Number(new RegExp(`${name}="(\\d+)"`).exec(suite)?.[1] ?? 0);
  const [failed, skipped] = [count('failures') + count('errors'), count('skipped')];
  const seconds = new Map<string, number>();
  for (const [, name = '', time] of text.matchAll(/<testcase classname="([\w.]+)"[^>]* time="([\d.]+)"/g)) {
    const parts = name.split('.');
    const module = parts.slice(0, parts.findIndex((part) => part.startsWith('test_')) + 1).join('/');
    seconds.set(module, (seconds.get(module) ?? 0) + Number(time));
  }
  const files = [...seconds].map(([module, sum]) => ({ file: `gpu-worker/${module}.py`, seconds: sum }));
  return { passed: count('tests') - failed - skipped, failed, skipped, files };
}

/** Of a program: its counts as JSON. One that has none counts as one test. */
export function readProgramReport(file: string, succeeded: boolean): Report {
  return existsSync(file) ? { ...(JSON.parse(readFileSync(file, 'utf8')) as Counts), files: [] } : countOne(succeeded);
}

export function countOne(succeeded: boolean): Report {
  return { passed: Number(succeeded), failed: Number(!succeeded), skipped: 0, files: [] };
}
