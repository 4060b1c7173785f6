/** The command: its address and key, what it prints, and a reward from start to end. */
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { reviewCommand } from '../../../cli/review/command.ts';
import { planReview, reviewLines } from '../../../cli/review/review.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { readGiven } from '../../../store/records/rewards/given-rewards.ts';
import { until } from '../../until.ts';
import { freePort } from '../../free-port.ts';
import { temporaryProject } from '../fixture-store.ts';
import { complaintIn, contextOf, runCli } from '../run-cli.ts';
import { awaitRewards } from './awaited-run.ts';
import { KEY } from './served.ts';

describe('key and host', () => {
  const plan = (words: string[], env: NodeJS.ProcessEnv, isTerminal: boolean) => {
    const context = contextOf(reviewCommand, '/project', words, env);
    return planReview({ ...context, output: { ...context.output, isTerminal } });
  };

  test('a new key is made for a terminal; one of the environment is never shown', () => {
    const made = plan([], {}, true);
    expect(made).toMatchObject({ host: '127.0.0.1', port: 8019, isNewKey: true });
    expect(reviewLines(made).join('\n')).toContain(`export TEMPER_REVIEW_KEY=${made.key}`);
    const place = plan(['--port', '9000'], { TEMPER_REVIEW_KEY: KEY }, true);
    const lines = reviewLines(place).join('\n');
    expect(lines).toContain(
      'rewards are taken at http://127.0.0.1:9000; Ctrl-C stops it\nkey     in TEMPER_REVIEW_KEY',
    );
    expect(lines).toContain('temper rewards RUN --links http://127.0.0.1:9000');
    expect(lines).toContain(' -H "Authorization: Bearer $TEMPER_REVIEW_KEY" -d \'{"reward": 0.7}\'');
    expect(lines).not.toContain(KEY);
  });

  test('what is wrong is told in one line', async () => {
    const project = temporaryProject();
    const complain = (words: string[], env: NodeJS.ProcessEnv = {}) =>
      complaintIn(project, ['review', ...words], { env });
    expect(await complain([])).toContain('temper review shows a new key on a terminal');
    expect(await complain(['--json'], { TEMPER_REVIEW_KEY: 'short' })).toContain('TEMPER_REVIEW_KEY must have');
    expect(await complain(['--host', '10.0.0.5'])).toContain('--host 10.0.0.5 is open to other machines');
    expect(await complain(['--host', '0.0.0.0'], { TEMPER_REVIEW_KEY: KEY })).toContain('--host 0.0.0.0 must come');
  });
});

test('it takes rewards until Ctrl-C, while Temporal is away and beside a run that cannot be read', async () => {
  const project = temporaryProject();
  const store = await openStore(join(project, '.temper', 'store'));
  await awaitRewards(store);
  await store.publish('runs/later/run.json', Buffer.from('{"schema":99}'));
  const port = await freePort();
  const stop = new AbortController();
  const place = ['--host', 'localhost', '--port', String(port), '--allow-host', 'rewards.internal'];
  const serving = runCli(project, ['review', ...place, '--json'], {
    env: { TEMPER_REVIEW_KEY: KEY },
    signal: stop.signal,
  });
  for (const attempt of [0, 1, 2]) {
    const path = `/v1/runs/demo/attempts/0.1.0.${attempt}/reward`;
    await until(
      'the reward is taken',
      async () => (await post(port, path, { reward: attempt / 2 })) === 200,
      120_000,
      50,
    );
  }
  stop.abort();
  const { exitCode, stdout, stderr } = await serving;
  expect([exitCode, stderr, JSON.parse(stdout)]).toEqual([
    0,
    expect.stringMatching(/^temper: runs\/later\/run\.json was made by a later version of Temper .*[^\n]$/),
    {
      url: `http://localhost:${port}`,
      keyVariable: 'TEMPER_REVIEW_KEY',
      reviews: [{ run: 'demo', url: expect.stringContaining(`http://localhost:${port}/review/`) as string }],
    },
  ]);
  const rows = await readGiven(store, { run: 'demo', branch: 0, step: 1, group: 0 });
  expect(rows).toMatchObject([{ reward: 0 }, { reward: 0.5 }, { reward: 1 }]);
  expect(stdout).not.toContain(KEY);
});

/** Status; null while nobody listens. */
function post(port: number, path: string, body: object): Promise<number | null> {
  const headers = { 'x-api-key': KEY, host: 'rewards.internal' };
  return new Promise((resolve) => {
    const asking = request({ host: 'localhost', port, path, method: 'POST', headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? null));
    });
    asking.on('error', () => resolve(null)).end(JSON.stringify(body));
  });
}
