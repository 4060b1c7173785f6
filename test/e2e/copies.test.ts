/**
 * Real runs that are stopped after their first steps, pushed to another store, and go on where they were, where they
 * were pushed to, and where they are pulled to: from bucket to bucket, from bucket to folder, and, pruned at home, from
 * folder to folder to bucket. All end with the bytes of a run that was in a folder from its beginning to its end.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FileStore } from '../../store/bytes/file-store.ts';
import { readSteps } from '../../store/records/runs/run-reader.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { BUCKET, startS3Server, type S3Server } from '../s3-server.ts';
import { Project, succeed, ticTacToe } from '../stack.ts';
import { startTestServer, type TestServer } from '../temporal-server.ts';
import { until } from '../until.ts';

const AGENT = ticTacToe();
const STEPS = 10;
const CONFIG = ['--base-model', 'pocket', '--steps', String(STEPS), '--groups-per-step', '2', '--group-size', '8'];
const FLAGS = [...CONFIG, '--eval-scenarios', '8', '--eval-every', '4', '--learning-rate', '4e-3'];
const ELSEWHERE = 's3://elsewhere/backup';

/** Views and marks of pruning stand under no hash: a copy makes its own as it goes on. */
const NOT_COMPARED = /checkpoints\/|\.times\.json$|\/pruned\.json$/;

/** A project, and the folder where its store's objects lie, by their keys. */
interface Place {
  readonly project: Project;
  readonly store: string;
}

let server: S3Server;
/** That of all three stacks. */
let temporal: TestServer;
let home: Place;
let elsewhere: Place;
let folder: Place;
let stoppedAfter: number;
let prunedAfter: number;
/** The verdict of `temper verify` on the run that was pruned. */
let verified: string;

const train = ({ project }: Place, run: string) => project.start('train', AGENT, '--run', run, ...FLAGS);

const open = (store: string | null) =>
  new Project({
    config: { store, localStack: { standby: false } },
    env: { TEMPORAL_ADDRESS: temporal.address, TEMPORAL_TLS: 'false' },
  });

const inBucket = (uri: string, store: string): Place => ({ project: open(uri), store });

function stepOf({ store }: Place, run: string): number {
  const state = readFileSync(join(store, 'runs', run, 'state.json'), 'utf8');
  return (JSON.parse(state) as { step: number }).step;
}

/** Hashes of all that stands under a hash: of a run by their names in it, of blobs by theirs. */
function bytesOf({ store }: Place, run: string): Record<string, string> {
  const folders = { blobs: join(store, 'blobs'), branches: join(store, 'runs', run, 'branches') };
  const files = Object.entries(folders).flatMap(([name, path]) =>
    readdirSync(path, { recursive: true, encoding: 'utf8' }).map(
      (file) => [`${name}/${file}`, join(path, file)] as const,
    ),
  );
  const kept = files.filter(([name, file]) => statSync(file).isFile() && !NOT_COMPARED.test(name));
  return Object.fromEntries(kept.map(([name, file]) => [name, hashBytes(readFileSync(file))]));
}

/** Without the blobs, which pruning removes and the runs of a store share. */
function branchesOf(place: Place, run: string): Record<string, string> {
  const files = Object.entries(bytesOf(place, run));
  return Object.fromEntries(files.filter(([name]) => name.startsWith('branches/')));
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

/** Steps that this project's own GPU worker committed. */
function committedHere({ project }: Place, run: string): unknown[] {
  const commits = project.log('gpu-worker').filter(({ msg, run: of }) => msg === 'step committed' && of === run);
  return commits.filter(({ found }) => found === false).map(({ step }) => step);
}

/** One stack for all that is done meanwhile, and none afterwards: there is never a second one. */
async function withStack({ project }: Place, work: () => Promise<void>): Promise<void> {
  const stack = project.start('dev', '--agent', AGENT);
  try {
    const isUp = () => stack.output().includes('Ctrl-C stops it') || stack.outcome() !== null;
    await until('the stack runs', isUp);
    await work();
  } finally {
    stack.interrupt();
    await stack.ended;
  }
}

/** Resolves to the steps that it has done by then. */
async function stopAfterItsFirstSteps(place: Place, run: string): Promise<number> {
  const first = train(place, run);
  const manifest = join(place.store, 'runs', run, 'branches', '0', 'steps', '1', 'manifest.json');
  await until('step 1 is committed', () => existsSync(manifest));
  await place.project.done('stop', run);
  await succeed(first.ended);
  return stepOf(place, run);
}

/** While no other run of the store has the same bytes: they are really gone. */
async function prune(backup: string): Promise<void> {
  prunedAfter = await stopAfterItsFirstSteps(folder, 'pruned');
  await folder.project.done('checkpoints', 'push', 'pruned', backup);
  await folder.project.done('checkpoints', 'prune', 'pruned', '--keep-last', '1');
  await succeed(train(folder, 'pruned').ended);
  verified = await folder.project.done('verify', 'pruned');
}

beforeAll(async () => {
  server = await startS3Server();
  temporal = await startTestServer();
  mkdirSync(server.file('../elsewhere'));
  home = inBucket(`s3://${BUCKET}/home`, server.file('home'));
  elsewhere = inBucket(ELSEWHERE, server.file('../elsewhere/backup'));
  const project = open(null);
  folder = { project, store: project.path('store') };
  const backup = join(project.folder, 'backup');

  await withStack(home, async () => {
    stoppedAfter = await stopAfterItsFirstSteps(home, 'demo');
    await home.project.done('checkpoints', 'push', 'demo', ELSEWHERE);
    await succeed(train(home, 'demo').ended);
  });
  await withStack(folder, async () => {
    await prune(backup);
    await folder.project.done('checkpoints', 'pull', 'demo', ELSEWHERE);
    expect(stepOf(folder, 'demo')).toBe(stoppedAfter);
    await succeed(train(folder, 'demo').ended);
    await succeed(train(folder, 'undisturbed').ended);
  });
  await elsewhere.project.done('checkpoints', 'pull', 'pruned', backup);
  expect([stepOf(elsewhere, 'demo'), stepOf(elsewhere, 'pruned')]).toEqual([stoppedAfter, prunedAfter]);
  await withStack(elsewhere, async () => {
    for (const run of ['demo', 'pruned']) await succeed(train(elsewhere, run).ended);
  });
});

afterAll(async () => {
  for (const { project } of [home, elsewhere, folder]) await project.close();
  await temporal.stop();
  await server.stop();
});

test('a run that was stopped in a bucket goes on there, and has the bytes of one that was in a folder all the time', () => {
  expect(stoppedAfter).toBeLessThan(STEPS);
  expect(stepOf(home, 'demo')).toBe(STEPS);
  const bytes = bytesOf(home, 'demo');
  const blobs = Object.entries(bytes).filter(([name]) => name.startsWith('blobs/'));
  for (const [name, sha256] of blobs) expect(name).toBe(`blobs/${sha256}`);
  expect(Object.keys(bytes)).toContain(`branches/0/steps/${STEPS}/manifest.json`);
  expect(bytes).toEqual(bytesOf(folder, 'undisturbed'));
});

test.each([
  ['in the bucket that it was pushed to', () => elsewhere],
  ['in the folder that pulled it', () => folder],
])('its copy goes on %s, trains the rest alone, and ends with the same bytes', (_, find) => {
  expect(stepOf(find(), 'demo')).toBe(STEPS);
  expect(committedHere(find(), 'demo')).toEqual(upTo(STEPS).slice(stoppedAfter));
  expect(bytesOf(find(), 'demo')).toEqual(bytesOf(home, 'demo'));
});

test('the copy in the bucket is whole, and its last step made again has the same bytes', async () => {
  const output = await elsewhere.project.done('verify', 'demo');
  expect(output).toContain(`re-computed demo@${STEPS}: adapter and optimizer state have the same bytes\n`);
  expect(output).toContain('demo is intact');
});

test('a run that was stopped and pruned goes on to its end, is whole, and its last step made again has the same bytes', () => {
  expect(prunedAfter).toBeLessThan(STEPS);
  const bytes = branchesOf(folder, 'pruned');
  expect(Object.keys(bytes)).toContain(`branches/0/steps/${STEPS}/manifest.json`);
  expect(bytes).toEqual(branchesOf(folder, 'undisturbed'));
  expect(verified).toContain(`re-computed pruned@${STEPS}: adapter and optimizer state have the same bytes\n`);
  expect(verified).toContain('pruned is intact');
});

test('its copy, from before it was pruned, goes on in another project, and ends with the same bytes', async () => {
  expect(branchesOf(elsewhere, 'pruned')).toEqual(branchesOf(folder, 'pruned'));
  const steps = (await readSteps(new FileStore(elsewhere.store), 'pruned')).map(({ step }) => step);
  expect(steps).toEqual(upTo(STEPS));
  expect(stepOf(elsewhere, 'pruned')).toBe(STEPS);
  expect(committedHere(elsewhere, 'pruned')).toEqual(steps.slice(prunedAfter));
});
