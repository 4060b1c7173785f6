/** `temper rewards give` and `temper rewards` on the store of a run that waits, without a server. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';

import { ReviewKeys } from '../../operations/review/keys.ts';
import { givenPrefix } from '../../store/layout.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { closeLedger, readGiven } from '../../store/records/rewards/given-rewards.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { runCli } from './run-cli.ts';
import { awaitRewards } from './review/awaited-run.ts';

let project: string;
let store: FileStore;
beforeEach(async () => {
  project = temporaryProject();
  store = new FileStore(join(project, '.temper', 'store'));
});

const temper = (...words: string[]) => runCli(project, words);
const rowsOf = (group: number) => readGiven(store, { run: 'demo', branch: 0, step: 1, group });
const hasRows = () => {
  const folder = join(project, '.temper/store', givenPrefix({ run: 'demo', branch: 0, step: 1, group: 0 }), '..');
  return readdirSync(folder).some((name) => name.endsWith('.given'));
};
function write(name: string, text: string): string {
  writeFileSync(join(project, name), text);
  return name;
}

test('awaited attempts are listed oldest first, with the end of what they said, and as JSON', async () => {
  const playedAt = Date.parse('2026-11-22T08:00:00Z');
  const answers = [0, 1, 2, 3].map(
    (attempt) => `It is\non its way, says answer ${attempt}. ${'Thank you. '.repeat(20)}`,
  );
  await awaitRewards(store, { external: { timeoutMs: 86_400_000 }, playedAt, answers });
  await temper('rewards', 'give', 'demo', '0.1.0.1', '0.5');
  const { stdout } = await temper('rewards', 'demo');
  const lines = stdout.split('\n');
  expect(lines.map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
    ['attempt', 'scenario', 'step'],
    ...['0.1.0.0', '0.1.0.2'].map((attempt) => [attempt, 's0', '1']),
    ...['0.1.1.0', '0.1.1.1', '0.1.1.2'].map((attempt) => [attempt, 's1', '1']),
    ['5 rewards of the run demo awaited, in 2 groups'],
  ]);
  expect(lines[1]).toMatch(/It is on its way, says answer 0\. .*…$/);
  const { awaited } = JSON.parse((await temper('rewards', 'demo', '--json')).stdout) as { awaited: object[] };
  expect(awaited).toHaveLength(5);
  expect(awaited[0]).toMatchObject({
    attempt: '0.1.0.0',
    scenario: 's0',
    playedAt: '2026-11-22T08:00:00.000Z',
    deadline: '2026-11-23T08:00:00.000Z',
  });
});

test('a reward is recorded with who gave it and why; the last one counts, and a negative one is no flag', async () => {
  await awaitRewards(store);
  const first = 'rewards give demo 0.1.0.0 -1 --by ann --note rude --metric tone=-0.5 --key k'.split(' ');
  expect(await temper(...first)).toMatchObject({
    exitCode: 0,
    stdout: '0.1.0.0 has the reward -1; 2 attempts of its group still wait',
  });
  expect((await temper(...first)).stdout).toBe('0.1.0.0 has the reward -1 already');
  expect(await rowsOf(0)).toMatchObject([
    { attempt: 0, reward: -1, by: 'ann', note: 'rude', metrics: { tone: -0.5 }, key: 'k' },
  ]);
  await temper('rewards', 'give', 'demo', '0.1.0.1', '1e-3');
  const { stdout } = await temper('rewards', 'give', 'demo', '0.1.0.2', '.5');
  expect(stdout.split('\n')).toEqual([
    '0.1.0.2 has the reward 0.5; its group is complete',
    'the run demo continues once its server and a worker are running (temper train or temper dev)',
  ]);
  expect((await temper('rewards', 'demo')).stdout).toMatch(/1 group complete, and decided once the run continues$/);
});

test('a file of rewards is given as a whole, and again without effect', async () => {
  await awaitRewards(store);
  const table = 'attempt,reward,by,note,metric.tone\n0.1.0.0,1,bob,"short, clear",0.5\n0.1.0.1,-0.5,,,\n';
  const csv = write('rewards.csv', table);
  expect((await temper('rewards', 'import', 'demo', csv, '--by', 'team')).stdout).toBe('2 rewards given');
  expect((await temper('rewards', 'import', 'demo', csv, '--by', 'team')).stdout).toBe(
    '0 rewards given, 2 given before',
  );
  expect(await rowsOf(0)).toMatchObject([
    { attempt: 0, reward: 1, by: 'bob', note: 'short, clear', metrics: { tone: 0.5 } },
    { attempt: 1, reward: -0.5, by: 'team', note: null },
  ]);
  const lines = [
    { run: 'demo', attempt: '0.1.1.0', reward: 2, key: 'a', metrics: { tone: 1 } },
    { attempt: '0.1.1.1', reward: 0, note: 'none' },
    { attempt: '0.1.1.2', reward: 0 },
  ];
  const jsonl = write('rewards.jsonl', lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  expect((await temper('rewards', 'import', 'demo', jsonl)).stdout).toMatch(/^3 rewards given\nthe run demo continues/);
  expect(await rowsOf(1)).toMatchObject([
    { reward: 2, key: 'a', metrics: { tone: 1 } },
    { reward: 0, note: 'none' },
    { reward: 0 },
  ]);
});

describe('one line refuses', () => {
  beforeEach(() => awaitRewards(store, { external: { name: 'csat', weight: 100 }, metrics: { moves: 3 } }));

  test.each<[string, string[], RegExp]>([
    ['an attempt that was not played', ['0.1.0.7', '1'], /has played no attempt 0\.1\.0\.7; see temper rewards demo$/],
    ['what names no attempt', ['ticket-0', '1'], /must be named BRANCH\.STEP\.GROUP\.ATTEMPT, .* got "ticket-0"/],
    ['a path', ['../../0.1.0.0', '1'], /got "\.\.\/\.\.\/0\.1\.0\.0"/],
    ['a failed attempt', ['0.1.1.3', '1'], /attempt 0\.1\.1\.3 failed and is not trained, so it takes no reward/],
    ['what is no number', ['0.1.0.0', 'good'], /VALUE must be a finite number, got "good"/],
    ['a weighted reward that is too large', ['0.1.0.0', '1e6'], /the weighted reward must be a finite .*, got \d+ /],
    ['a metric without a value', ['0.1.0.0', '1', '--metric', 'tone'], /--metric must be NAME=VALUE, got "tone"/],
    ['the name of a reward', ['0.1.0.0', '1', '--metric', 'reward/a=1'], /a metric must be named by letters/],
    [
      'the name of a number of Temper',
      ['0.1.0.0', '1', '--metric', 'reward=1'],
      /not have reserved names, got reward;/,
    ],
    ['the name of a metric of the agent', ['0.1.0.0', '1', '--metric', 'moves=1'], /be one of the agent's, got moves/],
    ['a note without end', ['0.1.0.0', '1', '--note', 'x'.repeat(2001)], /note must be a text of 1 to 2000 characters/],
    ['no attempt', [], /ATTEMPT is missing; usage: temper rewards give RUN ATTEMPT VALUE/],
  ])('%s', async (_name, words, message) => {
    const { exitCode, stderr } = await temper('rewards', 'give', 'demo', ...words);
    expect({ exitCode, lines: stderr.split('\n').length }).toEqual({ exitCode: 2, lines: 1 });
    expect(stderr).toMatch(message);
    expect(hasRows()).toBe(false);
  });

  test.each([
    ['a.csv', 'attempt,reward,score\n0.1.0.0,1,2\n', /line 2 of \S+a\.csv may have run, .*, got score/],
    ['a.csv', 'attempt,reward\n0.1.0.0,1\n0.1.0.1,x\n', /reward of line 3 .* finite number, got "x"/],
    ['a.csv', 'attempt,reward\n0.1.0.0,\n', /line 2 .* must have attempt and reward, got no reward/],
    ['a.csv', 'attempt,reward\n0.1.0.0,1\n0.1.0.0,2\n', /line 3 .* gives the attempt 0\.1\.0\.0 again/],
    ['a.csv', 'run,attempt,reward\nother,0.1.0.0,1\n', /must be of the run demo, got "other"/],
    ['a.csv', 'attempt,reward\n0.1.0.0,1\n0.9.0.1,2\n', /line 3 .*no reward of the file was given/],
    ['a.csv', 'attempt,reward\n', /must have a reward in each line, got none/],
    ['a.jsonl', '{"attempt":"0.1.0.0","reward":"1"}\n', /the reward must be a finite number from .*, got "1"/],
  ])('a file %s with %j, and gives nothing of it', async (file, text, message) => {
    const { exitCode, stderr } = await temper('rewards', 'import', 'demo', write(file, text));
    expect({ exitCode, lines: stderr.split('\n').length }).toEqual({ exitCode: 2, lines: 1 });
    expect(stderr).toMatch(message);
    expect(hasRows()).toBe(false);
  });

  test('a reward after the decision, with the number of the step', async () => {
    await temper('rewards', 'give', 'demo', '0.1.0.0', '1');
    await closeLedger(store, { run: 'demo', branch: 0, step: 1, group: 0 }, 'timeout');
    const { exitCode, stderr } = await temper('rewards', 'give', 'demo', '0.1.0.1', '1');
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/step 1 of the run demo is decided \(group 0 since \S+\); 0\.1\.0\.1 keeps what it had$/);
    expect((await temper('rewards', 'give', 'demo', '0.1.0.0', '1')).stdout).toBe('0.1.0.0 has the reward 1 already');
    expect(await rowsOf(0)).toHaveLength(2);
  });

  test('a file that is not there', async () => {
    const missing = await temper('rewards', 'import', 'demo', 'none.csv');
    expect(missing.stderr).toMatch(/FILE must name a file, got none\.csv, which is not there/);
  });
});

test('a run that rewards itself takes none, and says so', async () => {
  await writeFixtureRun(project, { steps: 1 });
  const { exitCode, stderr } = await temper('rewards', 'give', 'demo', '0.1.0.0', '1');
  expect({ exitCode, stderr }).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/give its agent reward: external/) as string,
  });
  expect((await temper('rewards', 'demo')).stdout).toMatch(/^the run demo waits for no rewards/);
  expect((await temper('rewards', 'give', 'none', '0.1.0.0', '1')).stderr).toMatch(/no run none in the store/);
});

describe('links', () => {
  const key = 'a review key of these tests';
  const links = (words: string[], env: NodeJS.ProcessEnv = { TEMPER_REVIEW_KEY: key }) =>
    runCli(project, ['rewards', 'demo', ...words], { env });

  test('one for each attempt that waits, signed for it, also as JSON', async () => {
    await awaitRewards(store);
    await temper('rewards', 'give', 'demo', '0.1.0.0', '1');
    const { stdout } = await links(['--links', 'https://rewards.example/team/']);
    const found = [...stdout.matchAll(/^(\S+) {2}https:\/\/rewards\.example\/team\/r\/(\S+)$/gm)];
    expect(found.map(([, attempt]) => attempt)).toEqual(['0.1.0.1', '0.1.0.2', '0.1.1.0', '0.1.1.1', '0.1.1.2']);
    const keys = new ReviewKeys(key, await store.id());
    for (const [, attempt, token] of found) expect(keys.read(token!, 'link')).toMatchObject({ run: 'demo', attempt });
    const day = await links(['--links', 'http://localhost:8019', '--expires-days', '1', '--json']);
    const { awaited } = JSON.parse(day.stdout) as { awaited: { link: string }[] };
    const { expiresAt } = keys.read(awaited[0]!.link.replace('http://localhost:8019/r/', ''), 'link')!;
    expect(Math.round((expiresAt - Date.now()) / 3_600_000)).toBe(24);
    expect(stdout).not.toContain(key);
  });

  test.each([
    ['--links https://a.example', null, /--links needs the key of temper review in TEMPER_REVIEW_KEY/],
    ['--links https://a.example', 'a', /must have at least 24 characters/],
    ['--links a.example', key, /must be the http\(s\) address .* got a\.example/],
    ['--links https://a:b@c.example', key, /without user, query or fragment/],
    ['--expires-days 1', null, /--expires-days has no effect without --links/],
  ])('temper rewards demo %s with the key %j is refused in one line', async (words, given, message) => {
    const env = given === null ? {} : { TEMPER_REVIEW_KEY: given };
    const { exitCode, stdout, stderr } = await links(words.split(' '), env);
    expect([exitCode, stdout, stderr.split('\n').length]).toEqual([2, '', 1]);
    expect(stderr).toMatch(message);
  });
});
