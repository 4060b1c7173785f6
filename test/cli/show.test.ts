import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeJson } from '../../store/bytes/json.ts';
import { manifestKey } from '../../store/layout.ts';
import type { FoundRuns } from '../../operations/results.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { evaluation, summary, writeFixtureRun } from './fixture-store.ts';
import { runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('show --json prints the view of the run, with its last step, from the store alone', async () => {
  const project = temporaryFolder();
  const store = await writeFixtureRun(project, { steps: 3 });
  const { exitCode, stdout, stderr } = await runCli(project, ['show', 'demo', '--json']);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const shown = JSON.parse(stdout) as Record<string, unknown>;
  expect(shown).toMatchObject({
    row: { state: 'completed', step: 3, steps: 3, wallSeconds: 151.5 },
    state: {
      evalBefore: { metrics: { winRate: 0.51 }, attempts: 200, step: 0 },
      evalAfter: { metrics: { winRate: 0.925, illegalRate: 0.01 }, step: 3 },
      adapterSha256: 'a'.repeat(64),
    },
    store: store.uri,
    pendingActivities: null,
    lastStep: summary(3, 3),
  });
});

test('a run of which nothing is recorded yet is starting', async () => {
  const project = temporaryFolder();
  const store = await writeFixtureRun(project, { steps: 3 });
  await store.replace('runs/demo/state.json', new TextEncoder().encode('null'));
  const { stdout } = await runCli(project, ['show', 'demo', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ row: { state: 'starting', step: 0 }, state: null });
});

test('show for people', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, {
    steps: 3,
    state: { state: 'running', phase: 'train', waitingFor: 'train step 4', evalAfter: null },
  });
  const { stdout } = await runCli(project, ['show', 'demo']);
  expect(stdout.replaceAll(project, 'PROJECT')).toMatchInlineSnapshot(`
    "run        demo: tic-tac-toe on pocket
    state      running (train)
    held out   before: 0.510 win (0.441 to 0.578) (200 held-out scenarios, 95 % intervals)
    step       3 of 3, reward 0.880
    before     reward 0.100 · win 0.510 · illegal 0.090 · draw 0.100 · moves 3.600
    time       2 min 32 s
    adapter    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    store      file://PROJECT/.temper/store
    waiting    train step 4
    server     not running; the run continues once a server runs (start temper train or temper dev)"
  `);
});

test('show says what samples, and whether a repeated run samples the same tokens', async () => {
  const project = temporaryFolder();
  const store = await writeFixtureRun(project, { steps: 3 });
  const newest = manifestKey({ run: 'demo', branch: 0, step: 3 });
  const shown = async (platform: Record<string, string>) => {
    await store.replace(newest, encodeJson(madeManifest({ branch: 0, step: 3 }, { platform })));
    const { engine } = JSON.parse((await runCli(project, ['show', 'demo', '--json'])).stdout) as { engine: unknown };
    return { engine, text: (await runCli(project, ['show', 'demo'])).stdout };
  };
  const embedded = await shown({});
  expect(embedded.engine).toEqual({ name: 'embedded', flags: null, repeatsSamples: true });
  expect(embedded.text).toContain('engine     embedded: a repeated run samples the same tokens\n');
  const vllm = await shown({ engine: 'vllm 0.32.0', engineFlags: '--dtype=float32' });
  expect(vllm.engine).toEqual({ name: 'vllm 0.32.0', flags: '--dtype=float32', repeatsSamples: false });
  expect(vllm.text).toContain(
    'engine     vllm 0.32.0: each call is answered once, and steps repeat from their recorded rollouts; samples do not repeat\n',
  );
});

test('show, report and the live lines warn of what the newest steps have in common, with what to change', async () => {
  const project = temporaryFolder();
  const store = await writeFixtureRun(project, { steps: 4 });
  const cut = [2, 3, 4].map((step) => ({ ...summary(step, 4), truncatedAttempts: 32 }));
  await addToCurve(store, 'demo', { branch: 0, step: 4 }, cut, () => undefined);
  const seen = '25 % of the attempts were truncated: what they did is not learned from, or wrongly';
  const remedy =
    'raise max_tokens of the calls (--max-tokens where they set none), shorten the prompts, or use --truncated penalise';
  const text = `${seen}; ${remedy}`;
  expect((await runCli(project, ['show', 'demo'])).stdout).toContain(`\nadvice     ${seen} (steps 2 to 4); ${remedy}`);
  const advisory = { kind: 'truncation', level: 'advice', text: seen, remedy, steps: [2, 4] };
  const shown = JSON.parse((await runCli(project, ['show', 'demo', '--json'])).stdout) as object;
  expect(shown).toMatchObject({ advisories: [advisory] });
  const { stdout } = await runCli(project, ['show', 'demo', '--follow']);
  expect(stdout.split('\n').filter((line) => line.startsWith('warning'))).toEqual([`warning: ${text}`]);
  await runCli(project, ['report', 'demo']);
  const page = await readFile(join(project, '.temper', 'reports', 'demo.html'), 'utf8');
  expect(page).toContain(JSON.stringify({ text: seen, remedy, steps: [2, 4] }).slice(1, -1));
  expect(page).toContain('"truncatedAttempts":32');
});

test('show has the last step’s rewards by name', async () => {
  const project = temporaryFolder();
  const store = await writeFixtureRun(project, { steps: 3, state: { step: 4, steps: 4 } });
  const last = summary(4, 4);
  const metrics = { ...last.metrics, 'reward/right': 0.512, 'reward/short': 0.4 };
  await addToCurve(store, 'demo', { branch: 0, step: 4 }, [{ ...last, metrics }], () => undefined);
  const { stdout } = await runCli(project, ['show', 'demo']);
  expect(stdout).toContain('\nrewards    right 0.512 · short 0.400\n');
});

test('show says who judges, and what that has cost', async () => {
  const project = temporaryFolder();
  const judging = { calls: 412, cached: 3, promptTokens: 1_200_000, completionTokens: 61_000, usd: 1.84 };
  const store = await writeFixtureRun(project, { steps: 3, state: { judging } });
  const run = JSON.parse(new TextDecoder().decode((await store.read('runs/demo/run.json')) ?? undefined)) as {
    config: object;
  };
  const config = { ...run.config, judge: 'openai/gpt-5-mini' };
  await store.replace('runs/demo/run.json', new TextEncoder().encode(JSON.stringify({ ...run, config })));
  const { stdout } = await runCli(project, ['show', 'demo']);
  expect(stdout).toContain('judge      openai/gpt-5-mini: 412 answers, 3 cached verdicts, 1261000 tokens, $1.84');
  const json = JSON.parse((await runCli(project, ['show', 'demo', '--json'])).stdout) as object;
  expect(json).toMatchObject({ config: { judge: 'openai/gpt-5-mini' }, state: { judging } });
});

const steered = {
  state: 'paused',
  branch: 1,
  lineage: [{ branch: 1, fromBranch: 0, fromStep: 2 }],
  steps: 9,
  pause: { since: '2026-11-21T09:00:00.000Z', reason: 'lunch' },
  waitingFor: 'temper resume demo; paused since 2026-11-21T09:00:00.000Z, because: lunch',
  changes: [{ setting: 'learningRate', from: 0.005, to: 0.001, branch: 1, step: 3, reason: 'it diverged' }],
} as const;

test('show of a run that was steered says on which branch it stands, what was changed, and what lets it go on', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, {
    steps: 3,
    state: { ...steered, lineage: [...steered.lineage], changes: [...steered.changes] },
  });
  const { stdout } = await runCli(project, ['show', 'demo']);
  const labels = ['state', 'step', 'branch', 'changed', 'waiting'];
  const rows = stdout.split('\n').filter((line) => labels.some((label) => line.startsWith(label.padEnd(11))));
  const said = rows.join('\n');
  expect(said).toMatch(/^state +paused since 2026-11-21T09:00:00.000Z, because: lunch$/m);
  expect(said).toMatch(/^branch +branch 1, from step 2 of branch 0$/m);
  expect(said).toMatch(/^waiting +temper resume demo; paused since /m);
  expect(said).toMatch(/^changed +learningRate 0.005 → 0.001 from step 3 on, because: it diverged$/m);
  const { stdout: json } = await runCli(project, ['show', 'demo', '--json']);
  expect(JSON.parse(json)).toMatchObject({ state: steered, waitingFor: steered.waitingFor });
});

test('runs is a table, and an empty list where there is none', async () => {
  const project = temporaryFolder();
  expect((await runCli(project, ['runs'])).stdout).toContain('no runs yet; start one with temper train AGENT');
  expect(JSON.parse((await runCli(project, ['runs', '--json'])).stdout)).toEqual({ runs: [], unreadable: [] });
  await writeFixtureRun(project, { steps: 3 });
  await writeFixtureRun(project, {
    run: 'other-run',
    agent: 'other',
    steps: 12,
    state: { state: 'failed', step: 7, evalAfter: null, evals: [evaluation(0, 0.51, 0.09)] },
  });
  const { stdout } = await runCli(project, ['runs']);
  expect(stdout).toMatch(/^demo +tic-tac-toe +pocket +completed +3\/3 +0.510 win +0.925 win +0.880 +2 min 32 s$/m);
  const { runs } = JSON.parse((await runCli(project, ['runs', '--agent', 'other', '--json'])).stdout) as FoundRuns;
  expect(runs.map(({ run }) => run)).toEqual(['other-run']);
  expect(stdout).toMatch(/^other-run +other +pocket +failed +7\/12 +0.510 win +– +0.880 +2 min 32 s$/m);
});

test('runs are compared by what they have reached, and by the settings in which they differ', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 3 });
  await writeFixtureRun(project, { run: 'other-run', steps: 2 });
  const { stdout } = await runCli(project, ['runs', 'compare', 'demo', 'other-run']);
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['', 'demo', 'other-run'],
    ['step', '3', '2'],
    ['reward', '0.762', '0.770'],
    ['held out', '0.925 win', '0.925 win'],
    ['steps', '3', '2'],
  ]);
  const alone = await runCli(project, ['runs', 'compare', 'demo']);
  expect(alone).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('2 to 6 names of runs') as string });
  expect((await runCli(project, ['runs', 'compare', 'demo', 'nope'])).stderr).toContain('no run nope in the store');
});

test('TEMPER_STORE names the store of a command that reads', async () => {
  const [project, other] = [temporaryFolder(), temporaryFolder()];
  await writeFixtureRun(other, { steps: 3 });
  const env = { TEMPER_STORE: join(other, '.temper', 'store') };
  for (const args of [['runs'], ['show', 'demo'], ['checkpoints', 'demo', '--json'], ['show', 'demo', '--follow']])
    expect(await runCli(project, args, { env })).toMatchObject({ exitCode: 0, stderr: '' });
  expect((await runCli(project, ['runs'], { env })).stdout).toContain('demo');
  expect((await runCli(project, ['runs'])).stdout).toContain('no runs yet');
});

test('the doctor looks at the store and the engine that the environment names', async () => {
  const [project, other] = [temporaryFolder(), temporaryFolder()];
  const env = { TEMPER_STORE: join(other, 'store'), TEMPER_ENGINE_URL: 'http://127.0.0.1:9' };
  const { stdout } = await runCli(project, ['doctor', '--json'], { env });
  const checks = JSON.parse(stdout) as { name: string; detail: string }[];
  const details = Object.fromEntries(checks.map(({ name, detail }) => [name, detail]));
  expect(details['store']).toContain(other);
  expect(details['engine']).toContain('http://127.0.0.1:9 does not answer');
  expect(details['Python environment']).toContain('not needed: the engine is http://127.0.0.1:9');
});

test('watching a run that has ended tells its curve and its result', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 3 });
  const { exitCode, stdout } = await runCli(project, ['show', 'demo', '--follow']);
  expect(exitCode).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "eval after step 0  reward 0.100 · win 0.510 · illegal 0.090 · draw 0.100 · moves 3.600  200 held-out scenarios
    step 1/3  reward 0.473  win 0.673 · illegal 0.067 · draw 0.100 · moves 3.267  entropy 1.267  0.8 s
    step 2/3  reward 0.630  win 0.830 · illegal 0.033 · draw 0.100 · moves 2.933  entropy 0.933  0.8 s
    step 3/3  reward 0.762  win 0.962 · illegal 0.000 · draw 0.100 · moves 2.600  entropy 0.600  0.8 s
    eval after step 3  reward 0.435 · win 0.925 · illegal 0.010 · draw 0.100 · moves 3.600  200 held-out scenarios
    demo: completed after 3 steps of 3 in 2 min 32 s
                   before   after
      reward        0.100   0.435
      win           0.510   0.925
      illegal       0.090   0.010
      draw          0.100   0.100
      moves         3.600   3.600
    adapter  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    before: 0.510 win (0.441 to 0.578) · after: 0.925 win (0.880 to 0.954) (200 held-out scenarios, 95 % intervals)"
  `);
});

test.each([
  ['failed', 'TrainerFailed: out of memory', 'failed: TrainerFailed: out of memory'],
  ['cancelled', null, 'was cancelled; its committed steps stay'],
] as const)('watching a run that has %s ends with exit code 1 and its end', async (state, failure, end) => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 3, state: { state, failure } });
  const { exitCode, stderr } = await runCli(project, ['show', 'demo', '--follow']);
  expect([exitCode, stderr]).toEqual([1, `temper: the run demo ${end}`]);
});
