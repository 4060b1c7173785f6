import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { readCheckpointName } from '../../cli/command-line/values.ts';
import { readRecomputePlan } from '../../cli/verify/read-recompute-plan.ts';
import { openBranch, requireWeights } from '../../store/records/lineage.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readManifest } from '../../store/records/run-reader.ts';
import { verifyRun } from '../../store/records/verify/verify-run.ts';
import type { Store } from '../../store/store.ts';
import { until } from '../until.ts';
import { makeBranch, makeRun } from '../store/records/made-run.ts';
import { temporaryProject } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

const TEMPER = fileURLToPath(new URL('../../cli/temper.js', import.meta.url));

let project: string;
let store: Store;

beforeEach(async () => {
  project = await temporaryProject();
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
  expect(await run('checkpoints', 'demo')).toMatchInlineSnapshot(`
    "step  reward  eval reward  eval solved  adapter       size   weights
    0     –       –            –            HASH  172 B  kept
    1     –       –            –            HASH  172 B  kept
    2     –       0.750        1.000        HASH  172 B  kept"
  `);
  const rows = JSON.parse(await run('checkpoints', 'demo', '--json')) as object[];
  expect(rows[2]).toMatchObject({ step: 2, branch: 0, eval: { reward: 0.75, solvedRate: 1 }, weights: 'kept' });
  expect(JSON.parse(await run('checkpoints', 'demo@best', '--json'))).toEqual([rows[2]]);
  expect(JSON.parse(await run('checkpoints', 'demo@0', '--json'))).toEqual([rows[0]]);
});

test('pruning says what it keeps and why; a dry run removes nothing', async () => {
  await makeRun(store, { steps: 5, evals: { 2: 0.75 } });
  const before = contents(project);
  const flags = ['prune', '--keep-last', '1', '--keep-best', 'solvedRate:1'];
  expect(await run('checkpoints', 'demo', ...flags, '--dry-run')).toMatchInlineSnapshot(`
    "kept    0: the run starts from it
    kept    2: one of the best 1 by solvedRate
    kept    4: a step in progress may need it
    kept    5: it is the current step of the run
    pruned  1, 3
    weights of 2 checkpoints would be removed; 4 blobs with 344 B would be deleted"
  `);
  const unknown = await runCli(project, ['checkpoints', 'demo', 'prune', '--keep-best', 'winRate:1']);
  expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining('there are reward, solvedRate')]);
  expect(contents(project)).toEqual(before);
  expect(JSON.parse(await run('checkpoints', 'demo', ...flags, '--json'))).toMatchObject({
    dryRun: false,
    pruned: [{ step: 1 }, { step: 3 }],
  });
  expect(await run('verify', 'demo', '--no-recompute')).toMatchInlineSnapshot(`
    "what              checked  pruned  wrong
    run files         5
    manifests         6
    parents           5
    adapters          5        2
    optimizer states  4        2
    rollouts          10
    verdicts          15
    evaluations       1
    inputs            22
    demo is intact"
  `);
  expect(await run('checkpoints', 'demo', ...flags)).toContain('nothing to prune');
});

test('what was pruned is listed as pruned: where another run has the same weights, and by a later pruning', async () => {
  await makeRun(store, { steps: 5 });
  await makeRun(store, { steps: 5, run: 'twin' });
  await run('checkpoints', 'demo', 'prune', '--keep-last', '2');
  const weights = (JSON.parse(await run('checkpoints', 'demo', '--json')) as { weights: string }[]).map(
    (row) => row.weights,
  );
  expect(weights).toEqual(['kept', 'pruned', 'pruned', 'pruned', 'kept', 'kept']);
  expect(await run('checkpoints', 'demo', 'prune', '--keep-last', '4')).toMatchInlineSnapshot(`
    "kept    0: the run starts from it
    kept    4: a step in progress may need it
    kept    5: it is the current step of the run
    nothing to prune"
  `);
});

test('named steps lose their weights, those that something needs are refused, and a whole run goes with all it has', async () => {
  await makeRun(store, { steps: 5 });
  const folder = join(project, '.temper', 'store');
  const before = contents(folder);
  expect(await complaint(['checkpoints', 'demo', 'delete', '--step', '1,5'])).toMatchInlineSnapshot(
    `"temper: demo@5 must keep its weights (it is the current step of the run), so nothing was deleted; leave it out of --step"`,
  );
  expect(await complaint(['checkpoints', 'demo', 'delete', '--step', '1-9'])).toMatchInlineSnapshot(
    `"temper: demo@6 is not committed, so nothing was deleted; see temper checkpoints demo"`,
  );
  expect(await run('checkpoints', 'demo', 'delete', '--step', '1,3', '--dry-run')).toMatchInlineSnapshot(`
    "pruned  1, 3
    weights of 2 checkpoints would be removed; 4 blobs with 344 B would be deleted"
  `);
  expect(contents(folder)).toEqual(before);
  expect(await run('checkpoints', 'demo', 'delete', '--step', '1,3')).toMatchInlineSnapshot(`
    "pruned  1, 3
    weights of 2 checkpoints removed; 4 blobs with 344 B were deleted"
  `);
  const rows = JSON.parse(await run('checkpoints', 'demo', '--json')) as { weights: string }[];
  expect(rows.map(({ weights }) => weights)).toEqual(['kept', 'pruned', 'kept', 'pruned', 'kept', 'kept']);
  expect(JSON.parse(await run('checkpoints', 'demo', 'delete', '--step', '1', '--json'))).toMatchObject({ pruned: [] });
  expect(await run('checkpoints', 'demo', 'delete', '--all', '--dry-run')).toContain('demo would be deleted');
  expect(await run('checkpoints', 'demo', 'delete', '--all')).toContain('demo was deleted');
  expect(contents(folder)).toEqual({});
});

test('a pruned checkpoint that the run goes back to is needed again', async () => {
  await makeRun(store, { steps: 5 });
  await makeRun(store, { steps: 5, run: 'twin' });
  await run('checkpoints', 'demo', 'prune', '--keep-last', '1');
  await openBranch(store, 'demo', { requestId: 'back', step: 2 });
  await run('checkpoints', 'twin', 'prune', '--keep-last', '1');
  await run('checkpoints', 'demo', 'prune', '--keep-last', '1');
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
  expect(await recomputed('demo@3')).toBe('demo@3');
  expect(await recomputed('demo~0')).toBe('demo@3');
  expect(await recomputed('demo@best')).toBe('demo@1');
});

test('what verify finds broken, pull repairs from the copy that push made', async () => {
  await makeRun(store, { evals: { 3: 1 } });
  expect(await run('checkpoints', 'demo', 'push', 'backup')).toMatchInlineSnapshot(
    `"demo: 4 steps in file://PROJECT/backup; 38 objects copied (SIZE), 0 already existed"`,
  );
  const { adapter } = (await readManifest(store, { run: 'demo', branch: 0, step: 2 }))!;
  truncateSync(join(project, '.temper', 'store', adapter.key), 10);
  const found = await runCli(project, ['verify', 'demo', '--no-recompute', '--json']);
  expect(found.exitCode).toBe(1);
  expect(JSON.parse(found.stdout)).toMatchObject({ ok: false, problems: [{ object: adapter.key }] });
  expect(await run('checkpoints', 'demo', 'pull', 'backup')).toContain(`repaired  ${adapter.key}`);
  expect(await run('verify', 'demo', '--no-recompute')).toContain('demo is intact');
});

test('a push that is killed leaves no run behind, and the next one completes it', async () => {
  await makeRun(store, { steps: 20 });
  const target = join(project, 'backup');
  const child = spawn(process.execPath, [TEMPER, 'checkpoints', 'demo', 'push', target], {
    cwd: project,
    stdio: 'ignore',
  });
  await until('some steps are copied', () => existsSync(join(target, 'runs/demo/branches/0/steps/3/manifest.json')));
  child.kill('SIGKILL');
  await once(child, 'close');
  expect(existsSync(join(target, 'runs/demo/run.json')), 'killed too late').toBe(false);
  const copied = JSON.parse(await run('checkpoints', 'demo', 'push', target, '--json')) as {
    present: number;
    copied: number;
  };
  expect(copied.present).toBeGreaterThan(15);
  expect(copied.copied).toBeGreaterThan(5);
  expect(contents(target)).toEqual(contents(join(project, '.temper', 'store')));
});

/** One line that says what to do, exit code 2, and nothing changed. */
async function complaint(args: readonly string[]): Promise<string> {
  const before = contents(project);
  const { exitCode, stdout, stderr } = await runCli(project, args);
  expect([exitCode, stdout]).toEqual([2, '']);
  expect(stderr.split('\n')).toHaveLength(1);
  expect(contents(project)).toEqual(before);
  return stderr.replaceAll(project, 'PROJECT');
}

describe('bad input of checkpoints', () => {
  beforeEach(() => makeRun(store, { steps: 1 }));

  test('an action that is none, or lacks its store, or has one too many', async () => {
    expect(await complaint(['checkpoints', 'demo', 'pul', 'x'])).toMatchInlineSnapshot(
      `"temper: ACTION must be one of push, pull, prune, delete, got "pul"; did you mean pull?"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'push'])).toMatchInlineSnapshot(
      `"temper: STORE is missing; usage: temper checkpoints RUN push STORE"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'prune', 'x', '--keep-last', '1'])).toMatchInlineSnapshot(
      `"temper: prune works on the project's own store, got "x"; remove that argument"`,
    );
    expect(await complaint(['checkpoints', 'demo@best', 'push', 'x'])).toMatchInlineSnapshot(
      `"temper: push works on a whole run, got "demo@best"; pass demo"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'push', 'x', 'y'])).toMatchInlineSnapshot(
      `"temper: unexpected argument "y"; usage: temper checkpoints CHECKPOINT [push|pull STORE | prune --keep-last N | delete --step N|--all] [--json]"`,
    );
  });

  test('a run or a store that is not there', async () => {
    expect(await complaint(['checkpoints', 'other', 'push', 'x'])).toMatchInlineSnapshot(
      `"temper: no run other in the store file://PROJECT/.temper/store (it has demo); start it with temper train"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'pull', 'x'])).toMatchInlineSnapshot(
      `"temper: no run demo in the store file://PROJECT/x (it has none yet); start it with temper train"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'push', 'ftp://x'])).toMatchInlineSnapshot(
      `"temper: the store must be a folder, a file:// URI or s3://BUCKET/PREFIX (ftp:// is not known), got ftp://x; name one"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'push', '.temper/store'])).toMatchInlineSnapshot(
      `"temper: a run must be copied to a different store than its own, got file://PROJECT/.temper/store twice; name another"`,
    );
  });

  test('deleting without a word on what, with two, or by a name that says it', async () => {
    const words = (...flags: string[]) => complaint(['checkpoints', 'demo', 'delete', ...flags]);
    expect(await words()).toMatchInlineSnapshot(
      `"temper: delete needs to know what to remove; pass --step N,M-K, or --all for the whole run"`,
    );
    expect(await words('--step', '1', '--all')).toMatchInlineSnapshot(
      `"temper: --step and --all cannot be combined; pass one of them"`,
    );
    expect(await words('--step', 'x')).toMatchInlineSnapshot(
      `"temper: --step must be numbers and ranges with commas between them, got "x"; pass --step 0-3,7"`,
    );
    expect(await words('elsewhere', '--all')).toMatchInlineSnapshot(
      `"temper: delete works on the project's own store, got "elsewhere"; remove that argument"`,
    );
    expect(await complaint(['checkpoints', 'demo@1', 'delete', '--all'])).toMatchInlineSnapshot(
      `"temper: delete takes steps by flag, got "demo@1"; pass demo delete --step N, or --all"`,
    );
    expect(await complaint(['checkpoints', 'demo~1', 'delete', '--all'])).toMatchInlineSnapshot(
      `"temper: --all removes a run with all its branches, got "demo~1"; pass demo"`,
    );
    expect(await complaint(['checkpoints', 'nope', 'delete', '--all'])).toMatchInlineSnapshot(
      `"temper: no run nope in the store file://PROJECT/.temper/store (it has demo); start it with temper train"`,
    );
  });

  test('pruning without a word on what to keep, or with a wrong one', async () => {
    expect(await complaint(['checkpoints', 'demo', 'prune'])).toMatchInlineSnapshot(
      `"temper: prune needs to know what to keep; pass --keep-last N, --keep-best METRIC:N or --keep-every N"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'prune', '--keep-last', '0'])).toMatchInlineSnapshot(
      `"temper: --keep-last must be a whole number of at least 1, got "0"; pass --keep-last N"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'prune', '--keep-best', 'reward'])).toMatchInlineSnapshot(
      `"temper: --keep-best must be METRIC:N, got "reward"; pass --keep-best reward:3"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'prune', '--keep-every', 'x'])).toMatchInlineSnapshot(
      `"temper: --keep-every must be a whole number of at least 1, got "x"; pass --keep-every N"`,
    );
    expect(await complaint(['checkpoints', 'demo', 'push', 'x', '--keep-last', '1'])).toMatchInlineSnapshot(
      `"temper: --keep-last has no effect here, it is a flag of prune; write temper checkpoints RUN prune --keep-last"`,
    );
  });
});

describe('bad input of verify', () => {
  test('a run that does not exist', async () => {
    await makeRun(store, { steps: 1 });
    expect(await complaint(['verify', 'other'])).toMatchInlineSnapshot(
      `"temper: no run other in the store file://PROJECT/.temper/store (it has demo); start it with temper train"`,
    );
  });

  test('a checkpoint that is none, or that nothing is done with', async () => {
    expect(await complaint(['verify', 'demo@last'])).toContain('got "demo@last"; see temper runs');
    expect(await complaint(['verify', 'demo@3', '--no-recompute'])).toMatchInlineSnapshot(
      `"temper: demo@3 names the step to recompute, and --no-recompute skips recomputing; pass demo, or leave --no-recompute out"`,
    );
  });

  test('a step that is not committed', async () => {
    await makeRun(store, { steps: 1 });
    expect(await complaint(['verify', 'demo@3'])).toMatchInlineSnapshot(
      `"temper: demo@3 is not committed (the newest before it is demo@1); pass that, or demo@latest"`,
    );
    expect(await complaint(['verify', 'demo@best'])).toContain('no checkpoint of demo has been evaluated');
  });
});
