import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';

import { JOBS, type Job } from './jobs.ts';
import { changedFiles, selectJobs, type Choice } from './select.ts';

const vitest = (title: string, project: string, others: Partial<Job> = {}): Job => ({
  title,
  tier: 'both',
  run: { by: 'vitest', project, ...(others.folders && { file: title }) },
  ...others,
});
const night = (title: string, ...folders: string[]) =>
  vitest(title, title.split('/')[1]!, { tier: 'nightly', folders });
const TABLE: Job[] = [
  vitest('unit', 'unit'),
  vitest('crash', 'crash'),
  vitest('slice', 'slices', { tier: 'landing' }),
  vitest('all scenes', 'slices', { tier: 'nightly' }),
  night('test/crash/judging.test.ts', 'play/judge'),
  night('test/crash/frozen.test.ts', 'workers'),
  night('test/crash/program.test.ts', 'play/programs'),
];
const FILES = TABLE.slice(4).map(({ title }) => title);

function select(choice: Partial<Choice>) {
  const { jobs, apart } = selectJobs(TABLE, { everything: false, changed: [], seed: 'tree', names: [], ...choice });
  return { titles: jobs.map(({ title }) => title), played: FILES.filter((file) => !apart.includes(file)) };
}

test('a landing plays what is not nightly, and one nightly file that its tree draws', () => {
  expect(select({}).titles).toEqual(['unit', 'crash', 'slice']);
  const drawn = (seed: number) => select({ seed: `${seed}` }).played;
  expect(drawn(1)).toHaveLength(1);
  expect(new Set(Array.from({ length: 30 }, (_, seed) => drawn(seed)[0])).size).toBe(3);
});

test('it also plays the nightly files whose folders it changes, or which it changes themselves', () => {
  expect(select({ changed: ['play/judge/ruler.ts', 'test/crash/program.test.ts'] }).played).toEqual(
    expect.arrayContaining(['test/crash/judging.test.ts', 'test/crash/program.test.ts']),
  );
  const beside = Array.from(
    { length: 30 },
    (_, seed) => select({ seed: `${seed}`, changed: ['play/judges.ts'] }).played,
  );
  expect(beside.every(({ length }) => length === 1)).toBe(true);
});

test('where nothing says what has changed, it plays all nightly files', () => {
  expect(select({ changed: null }).played).toEqual(FILES);
});

test('everything is everything, but the slice of what is played whole', () => {
  expect(select({ everything: true })).toEqual({ titles: ['unit', 'crash', 'all scenes'], played: FILES });
});

test('a part of a title chooses; a nightly file that is named has a job of its own', () => {
  expect(select({ names: ['unit'] }).titles).toEqual(['unit']);
  const named = selectJobs(TABLE, { everything: false, changed: [], seed: '', names: ['judging'] });
  expect(named.jobs.map(({ title }) => title)).toEqual(['test/crash/judging.test.ts']);
});

test('a name of no job, and a base that is no revision, are refused', () => {
  expect(() => select({ names: ['nosuch'] })).toThrow('no job has nosuch in its title');
  expect(() => changedFiles('nosuch')).toThrow('--base must be a revision of this repository, got nosuch');
});

test('every file and every folder of the table exists', () => {
  const named = JOBS.flatMap(({ folders = [], run }) => [
    ...folders,
    ...(run.by === 'program' ? [run.script] : []),
    ...(run.by === 'vitest' && run.file !== undefined ? [run.file] : []),
    ...(run.by === 'pytest' && run.file !== undefined ? [`gpu-worker/${run.file}`] : []),
    ...(run.by === 'numbers' ? run.files.map((file) => `gpu-worker/${file}`) : []),
  ]);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});
