/**
 * A real run in a bucket that is stopped and pushed to another bucket: it goes on there, it goes on in a folder that pulls
 * it, and it goes on where it was. All end with the bytes of a run that was in a folder from its beginning to its end.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashBytes } from '../../store/sha256.ts';
import { Project, until, type Ended } from '../crash/project.ts';
import { BUCKET, startS3Server, type S3Server } from '../s3-server.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const STEPS = 10;
const CONFIG = ['--base-model', 'pocket', '--steps', String(STEPS), '--groups-per-step', '2', '--group-size', '8'];
const FLAGS = [...CONFIG, '--eval-scenarios', '8', '--eval-every', '4', '--learning-rate', '4e-3'];
const ELSEWHERE = 's3://elsewhere/backup';

/** Views stand under no hash: a copy makes its own as it goes on. */
const NOT_COMPARED = /checkpoints\/|\.times\.json$/;

/** A project, and the folder where its store's objects lie, by their keys. */
interface Place {
  readonly project: Project;
  readonly store: string;
}

let server: S3Server;
let home: Place;
let elsewhere: Place;
let folder: Place;
let stoppedAfter: number;

const train = ({ project }: Place, run: string) => project.start('train', AGENT, '--run', run, ...FLAGS);

const inBucket = (uri: string, store: string): Place => ({ project: new Project({ store: uri }), store });

async function expectDone(ended: Promise<Ended>): Promise<string> {
  const { code, output } = await ended;
  expect(code, output).toBe(0);
  return output;
}

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

/** Steps that this project's own GPU worker committed. */
function committedHere({ project }: Place, run: string): unknown[] {
  const commits = project.log('gpu-worker').filter(({ msg, run: of }) => msg === 'step committed' && of === run);
  return commits.filter(({ found }) => found === false).map(({ step }) => step);
}

/** One stack for all that is done meanwhile, and none afterwards: there is never a second one. */
async function withStack({ project }: Place, work: () => Promise<void>): Promise<void> {
  const stack = project.start('dev', '--agent', AGENT);
  try {
    const isUp = () => stack.output().includes('Ctrl-C stops it') || stack.child.exitCode !== null;
    await until('the stack runs', isUp);
    await work();
  } finally {
    stack.child.kill('SIGINT');
    await stack.ended;
  }
}

async function stopAfterItsFirstSteps(): Promise<void> {
  const first = train(home, 'demo');
  const manifest = join(home.store, 'runs', 'demo', 'branches', '0', 'steps', '1', 'manifest.json');
  await until('step 1 is committed', () => existsSync(manifest));
  await expectDone(home.project.run('stop', 'demo'));
  await expectDone(first.ended);
  stoppedAfter = stepOf(home, 'demo');
}

beforeAll(async () => {
  server = await startS3Server();
  mkdirSync(server.file('../elsewhere'));
  home = inBucket(`s3://${BUCKET}/home`, server.file('home'));
  elsewhere = inBucket(ELSEWHERE, server.file('../elsewhere/backup'));
  const project = new Project();
  folder = { project, store: project.path('store') };

  await withStack(home, async () => {
    await stopAfterItsFirstSteps();
    await expectDone(home.project.run('checkpoints', 'demo', 'push', ELSEWHERE));
    await expectDone(train(home, 'demo').ended);
  });
  await expectDone(folder.project.run('checkpoints', 'demo', 'pull', ELSEWHERE));
  await withStack(folder, async () => {
    expect(stepOf(folder, 'demo')).toBe(stoppedAfter);
    await expectDone(train(folder, 'demo').ended);
    await expectDone(train(folder, 'undisturbed').ended);
  });
  expect(stepOf(elsewhere, 'demo')).toBe(stoppedAfter);
  await expectDone(train(elsewhere, 'demo').ended);
});

afterAll(async () => {
  for (const { project } of [home, elsewhere, folder]) await project.close();
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
  const rest = Array.from({ length: STEPS - stoppedAfter }, (__, index) => stoppedAfter + index + 1);
  expect(committedHere(find(), 'demo')).toEqual(rest);
  expect(bytesOf(find(), 'demo')).toEqual(bytesOf(home, 'demo'));
});

test('the copy in the bucket is whole, and its last step made again has the same bytes', async () => {
  const output = await expectDone(elsewhere.project.run('verify', 'demo'));
  expect(output).toContain(`re-computed demo@${STEPS}: adapter and optimizer state have the same bytes\n`);
  expect(output).toContain('demo is intact');
});
