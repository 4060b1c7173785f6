import { existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { readCheckpointName } from '../../cli/command-line/values.ts';
import { checkJudge } from '../../cli/planning/check-judge.ts';
import { readRecomputePlan } from '../../cli/verify/read-recompute-plan.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { defineAgent, ruler } from '../../sdk/index.ts';
import { openBranch, requireWeights } from '../../store/records/runs/lineage.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readManifest } from '../../store/records/runs/run-reader.ts';
import { verifyRun } from '../../store/records/verify/verify-run.ts';
import type { Store } from '../../store/store.ts';
import { startCommand, temperCommand } from '../stack.ts';
import { until } from '../until.ts';
import { makeBranch, makeRun } from '../store/records/made-run.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, runCli } from './run-cli.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
});

async function run(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runCli(project, args);
  expect(exitCode, stderr).toBe(0);
  // Hashes and sizes follow from the configuration, which grows.
  return stdout
    .replaceAll(project, 'PROJECT')
    .replaceAll(/\b[0-9a-f]{12}\b/g, 'HASH')
    .replaceAll(/\d+\.\d kB/g, 'SIZE');
}

function contents(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const kept = files
    .filter((file) => statSync(join(folder, file)).isFile() && !/store\.json|\.tmp$/.test(file))
    .toSorted();
  return Object.fromEntries(kept.map((file) => [file, readFileSync(join(folder, file), 'base64')]));
}

test('checkpoints are listed with what they are worth', async () => {
  await makeRun(store, { steps: 2, evals: { 2: 0.75 } });
  expect(await run('checkpoints', 'demo')).toMatch(/^2 +0.770 +0.750 +1.000 +HASH +172 B +kept$/m);
  const rows = JSON.parse(await run('checkpoints', 'demo', '--json')) as object[];
  expect(rows[0]).toMatchObject({
    step: 2,
    name: 'demo@2',
    evaluation: { reward: 0.75, metrics: { solvedRate: 1 } },
    weights: 'kept',
  });
  expect(JSON.parse(await run('checkpoints', 'demo@best', '--json'))).toEqual([rows[0]]);
  expect(JSON.parse(await run('checkpoints', 'demo@0', '--json'))).toEqual([rows[2]]);
});

test('pruning says what it keeps and why; a dry run removes nothing', async () => {
  await makeRun(store, { steps: 5, evals: { 2: 0.75 } });
  const before = contents(project);
  const flags = ['--keep-last', '1', '--keep-best', 'solvedRate:1'];
  const said = await run('checkpoints', 'prune', 'demo', ...flags, '--dry-run');
  expect(said).toContain('kept    2: one of the best 1 by solvedRate\n');
  expect(said).toContain('kept    4: a step in progress may need it\nkept    5: it is the current step of the run\n');
  expect(said).toContain(
    'pruned  1, 3\nweights of 2 checkpoints would be removed; 4 blobs with 344 B would be deleted',
  );
  const unknown = await runCli(project, ['checkpoints', 'prune', 'demo', '--keep-best', 'winRate:1']);
  expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining('there are reward, solvedRate')]);
  expect(contents(project)).toEqual(before);
  expect(JSON.parse(await run('checkpoints', 'prune', 'demo', ...flags, '--json'))).toMatchObject({
    dryRun: false,
    pruned: [{ step: 1 }, { step: 3 }],
  });
  const verified = await run('verify', 'demo', '--no-recompute');
  expect(verified).toMatch(/^adapters +5 +2$[^]*^optimizer states +4 +2$[^]*^demo is intact$/m);
  expect(await run('checkpoints', 'prune', 'demo', ...flags)).toContain('nothing to prune');
});

test('what was pruned is listed as pruned: where another run has the same weights, and by a later pruning', async () => {
  await makeRun(store, { steps: 5 });
  await makeRun(store, { steps: 5, run: 'twin' });
  await run('checkpoints', 'prune', 'demo', '--keep-last', '2');
  const weights = (JSON.parse(await run('checkpoints', 'demo', '--json')) as { weights: string }[]).map(
    (row) => row.weights,
  );
  expect(weights).toEqual(['kept', 'kept', 'pruned', 'pruned', 'pruned', 'kept']);
  expect(await run('checkpoints', 'prune', 'demo', '--keep-last', '4')).toContain('nothing to prune');
});

test('named steps lose their weights, those that something needs are refused, and a whole run goes with all it has', async () => {
  await makeRun(store, { steps: 5 });
  const folder = join(project, '.temper', 'store');
  const before = contents(folder);
  expect(await complaint(['checkpoints', 'delete', 'demo', '--step', '1,5'])).toContain('demo@5 must keep its weights');
  expect(await complaint(['checkpoints', 'delete', 'demo', '--step', '1-9'])).toContain('demo@6 is not committed');
  const planned = await run('checkpoints', 'delete', 'demo', '--step', '1,3', '--dry-run');
  expect(planned).toContain(
    'pruned  1, 3\nweights of 2 checkpoints would be removed; 4 blobs with 344 B would be deleted',
  );
  expect(contents(folder)).toEqual(before);
  expect(await run('checkpoints', 'delete', 'demo', '--step', '1,3')).toContain('weights of 2 checkpoints removed');
  const rows = JSON.parse(await run('checkpoints', 'demo', '--json')) as { weights: string }[];
  expect(rows.map(({ weights }) => weights)).toEqual(['kept', 'kept', 'pruned', 'kept', 'pruned', 'kept']);
  expect(JSON.parse(await run('checkpoints', 'delete', 'demo', '--step', '1', '--json'))).toMatchObject({ pruned: [] });
  expect(await run('checkpoints', 'delete', 'demo', '--all', '--dry-run')).toContain('demo would be deleted');
  expect(await run('checkpoints', 'delete', 'demo', '--all')).toContain('demo was deleted');
  expect(contents(folder)).toEqual({});
});

test('a pruned checkpoint that the run goes back to is needed again', async () => {
  await makeRun(store, { steps: 5 });
  await makeRun(store, { steps: 5, run: 'twin' });
  await run('checkpoints', 'prune', 'demo', '--keep-last', '1');
  await openBranch(store, 'demo', { requestId: 'back', step: 2 });
  await run('checkpoints', 'prune', 'twin', '--keep-last', '1');
  await run('checkpoints', 'prune', 'demo', '--keep-last', '1');
  await requireWeights(store, 'demo', 2);
});

test('the step that verify recomputes is the one that is named, without a name the last one', async () => {
  const made = await makeRun(store, { steps: 3, evals: { 1: 0.75, 3: 0.5 } });
  await openBranch(store, 'demo', { requestId: 'back', step: 2 });
  await makeBranch(store, made, 1, 2, 1);
  const verification = await verifyRun(store, 'demo');
  const recomputed = async (text: string) => {
    const plan = await readRecomputePlan(store, readCheckpointName(text), verification, verification.config);
    return typeof plan === 'string' ? plan : plan.policy;
  };
  expect(await recomputed('demo')).toBe('demo~1@3');
  expect(await recomputed('demo@3')).toBe('demo~1@3');
  expect(await recomputed('demo~0')).toBe('demo~0@3');
  expect(await recomputed('demo@best')).toBe('demo@1');
});

test('a judge is a step of the current line, unless a run recorded another one', async () => {
  const made = await makeRun(store, { steps: 3 });
  await openBranch(store, 'demo', { requestId: 'back', step: 2 });
  await makeBranch(store, made, 1, 2, 1);
  const check = async (judge: string, recorded: string | null = null) => {
    const agent = defineAgent({ name: 'a', scenarios: [], reward: ruler({ judge }), rollout: () => undefined });
    const config = { ...defaultRunConfig({ run: 'judged', agent: 'a', baseModel: 'pocket' }), judge };
    await checkJudge(agent, config, { store, env: {}, recorded });
  };
  await check('engine/demo@2');
  await check('engine/demo~1@3');
  await check('engine/demo@3', 'engine/demo@3');
  await expect(check('engine/demo@3')).rejects.toThrow('of demo has left; pass engine/demo~1@3, or fork');
});

test('what verify finds broken, pull repairs from the copy that push made', async () => {
  await makeRun(store, { evals: { 3: 1 } });
  expect(await run('checkpoints', 'push', 'demo', 'backup')).toContain('demo: 4 steps in file://PROJECT/backup');
  const { adapter } = (await readManifest(store, { run: 'demo', branch: 0, step: 2 }))!;
  truncateSync(join(project, '.temper', 'store', adapter.key), 10);
  const found = await runCli(project, ['verify', 'demo', '--no-recompute', '--json']);
  expect(found.exitCode).toBe(1);
  expect(JSON.parse(found.stdout)).toMatchObject({ ok: false, problems: [{ object: adapter.key }] });
  expect(await run('checkpoints', 'pull', 'demo', 'backup')).toContain(`repaired  ${adapter.key}`);
  expect(await run('verify', 'demo', '--no-recompute')).toContain('demo is intact');
});

test('a push that is killed leaves no run behind, and the next one completes it', async () => {
  await makeRun(store, { steps: 20 });
  const target = join(project, 'backup');
  const { child, ended } = startCommand(project, [...temperCommand(), 'checkpoints', 'push', 'demo', target]);
  await until('some steps are copied', () => existsSync(join(target, 'runs/demo/branches/0/steps/3/manifest.json')));
  child.kill('SIGKILL');
  await ended;
  expect(existsSync(join(target, 'runs/demo/run.json')), 'killed too late').toBe(false);
  const copied = JSON.parse(await run('checkpoints', 'push', 'demo', target, '--json')) as {
    present: number;
    copied: number;
  };
  expect(copied.present).toBeGreaterThan(15);
  expect(copied.copied).toBeGreaterThan(5);
  expect(contents(target)).toEqual(contents(join(project, '.temper', 'store')));
});

/** Nothing of the store changed, either. */
async function complaint(args: readonly string[]): Promise<string> {
  const before = contents(project);
  const said = await complaintIn(project, args);
  expect(contents(project)).toEqual(before);
  return said;
}

describe('bad input', () => {
  beforeEach(() => makeRun(store, { steps: 1 }));

  test.each([
    // An action that lacks its store, or has one too many.
    ['push demo', 'STORE is missing; usage: temper checkpoints push RUN STORE'],
    ['prune demo x --keep-last 1', 'unexpected argument "x"; usage: temper checkpoints prune RUN'],
    ['push demo@best x', 'push works on a whole run, got "demo@best"; pass demo'],
    ['push demo x y', 'unexpected argument "y"; usage: temper checkpoints push RUN STORE'],
    // A run or a store that is not there.
    ['push other x', 'no run other in the store file://PROJECT/.temper/store (it has demo); start it'],
    ['pull demo x', 'no run demo in the store file://PROJECT/x (it has none yet); start it'],
    [
      'push demo ftp://x',
      'the store must be a folder, a file:// URI or s3://BUCKET/PREFIX (ftp:// is not known), got ftp',
    ],
    ['push demo .temper/store', 'a run must be copied to a different store than its own, got file://PROJECT/.temper/'],
    // Deleting without a word on what, with two, or by a name that says it.
    ['delete demo', 'delete needs to know what to remove; pass --step N,M-K, or --all for the whole run'],
    ['delete demo --step 1 --all', '--step and --all exclude each other; leave one of them out'],
    ['delete demo --step x', '--step must be numbers and ranges with commas between them, got "x"; pass --step 0-3,7'],
    ['delete demo@1 --all', 'delete takes steps by flag, got "demo@1"; pass --step N, or --all'],
    ['delete demo~1 --all', 'delete --all works on a whole run, got "demo~1"; pass demo'],
    // Pruning without a word on what to keep, or with a wrong one.
    ['prune demo', 'prune needs to know what to keep; pass --keep-last N, --keep-best METRIC:N or --keep-every N'],
    ['prune demo --keep-last 0', '--keep-last must be a whole number of at least 1, got "0"; pass --keep-last N'],
    ['prune demo --keep-best reward', '--keep-best must be METRIC:N, got "reward"; pass --keep-best reward:3'],
    ['push demo x --keep-last 1', 'unknown flag --keep-last'],
  ])('temper checkpoints %s', async (line, message) => {
    expect(await complaint(['checkpoints', ...line.split(' ')])).toContain(`temper: ${message}`);
  });

  test.each([
    ['demo@3 --no-recompute', 'demo@3 names the step to recompute, and --no-recompute skips recomputing; pass demo'],
    ['demo@3', 'demo@3 is not committed (the newest before it is demo@1); pass that, or demo@latest'],
  ])('temper verify %s', async (line, message) => {
    expect(await complaint(['verify', ...line.split(' ')])).toContain(message);
  });
});
