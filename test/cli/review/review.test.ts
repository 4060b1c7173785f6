/** The command: its address and key, what it prints, and a reward from start to end. */
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { reviewCommand } from '../../../cli/review/command.ts';
import { reviewLines } from '../../../cli/review/lines.ts';
import { planReview } from '../../../cli/review/plan-review.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { readGiven } from '../../../store/records/given-rewards.ts';
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
    expect(reviewLines(place).join('\n')).toMatchInlineSnapshot(`
      "rewards are taken at http://127.0.0.1:9000; Ctrl-C stops it
      key     in TEMPER_REVIEW_KEY
      links   temper rewards RUN --links http://127.0.0.1:9000

      curl http://127.0.0.1:9000/v1/runs/RUN/rewards -H "Authorization: Bearer $TEMPER_REVIEW_KEY"
      curl http://127.0.0.1:9000/v1/runs/RUN/attempts/ATTEMPT/reward -H "Authorization: Bearer $TEMPER_REVIEW_KEY" -d '{"reward": 0.7}'"
    `);
  });

  test('what is wrong is told in one line', async () => {
    const project = await temporaryProject();
    const complain = (words: string[], env: NodeJS.ProcessEnv = {}) =>
      complaintIn(project, ['review', ...words], { env });
    expect([
      await complain([]),
      await complain(['--json'], { TEMPER_REVIEW_KEY: 'short' }),
      await complain(['--host', '10.0.0.5']),
      await complain(['--host', '0.0.0.0'], { TEMPER_REVIEW_KEY: KEY }),
    ]).toMatchInlineSnapshot(`
      [
        "temper: temper review shows a new key on a terminal only, and needs one in TEMPER_REVIEW_KEY here; export TEMPER_REVIEW_KEY="$(openssl rand -base64 32)"",
        "temper: TEMPER_REVIEW_KEY must have at least 24 characters (links are signed with it), got 5; export TEMPER_REVIEW_KEY="$(openssl rand -base64 32)"",
        "temper: --host 10.0.0.5 is open to other machines and needs a key in TEMPER_REVIEW_KEY, which is not set; export TEMPER_REVIEW_KEY="$(openssl rand -base64 32)"",
        "temper: --host 0.0.0.0 must come with --allow-host, otherwise requests from other machines are refused; pass --allow-host and the name or address that they use",
      ]
    `);
  });
});

test('it takes rewards until Ctrl-C, while Temporal is away', async () => {
  const project = await temporaryProject();
  const store = await openStore(join(project, '.temper', 'store'));
  await awaitRewards(store);
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
    '',
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
