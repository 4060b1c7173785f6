/** Flags and keys of `temper serve --record`, before anything is started. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { serveCommand } from '../../cli/serve/command.ts';
import { servedJson, servedLines } from '../../cli/serve/lines.ts';
import { planRecording } from '../../cli/serve/plan-serve.ts';
import { write } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { complaintIn, contextOf, runCli } from './run-cli.ts';

let project: string;
beforeEach(async () => {
  project = temporaryProject();
  await write(join(project, 'redact.ts'), 'export default () => null;');
});

function plan(words: string, env: NodeJS.ProcessEnv = {}, isTerminal = false) {
  const context = contextOf(serveCommand, project, ['demo@1', ...words.split(' ').filter(Boolean)], env);
  return planRecording({ ...context, output: { ...context.output, isTerminal } }, { key: 'k' });
}

test('nothing is recorded without --record, and what is recorded follows from the flags', () => {
  const key = { TEMPER_FEEDBACK_KEY: 'f' };
  expect(plan('')).toBeNull();
  const all = { share: 1, days: null, redact: null, feedbackKey: 'f', isNewKey: false };
  expect(plan('--record', key)).toEqual(all);
  expect(plan('--record --record-share 0.25', key)).toEqual({ ...all, share: 0.25 });
  expect(plan('--record --record-days 30', key)).toEqual({ ...all, days: 30 });
  expect(plan('--record --redact redact.ts', key)).toEqual({ ...all, redact: join(project, 'redact.ts') });
});

test('a new feedback key is made for a terminal alone; elsewhere feedback stays closed', () => {
  expect(plan('--record')).toMatchObject({ feedbackKey: null, isNewKey: false });
  expect(plan('--record --json', {}, true)).toMatchObject({ feedbackKey: null });
  const made = plan('--record', {}, true)!;
  expect(made).toMatchObject({ feedbackKey: expect.stringMatching(/^[\w-]{43}$/), isNewKey: true });
  const place = { host: '127.0.0.1', port: 8018, key: 'k', isNewKey: false };
  const served = { ...place, policy: 'demo@1', models: ['demo@1'], adapterSha256: '', recording: made };
  expect(servedLines(served)).toEqual(expect.arrayContaining([`export TEMPER_FEEDBACK_KEY=${made.feedbackKey}`]));
  const given = {
    ...served,
    recording: plan('--record --record-share 0.5 --record-days 1', { TEMPER_FEEDBACK_KEY: 'f' }),
  };
  expect(servedLines(given)).toEqual(
    expect.arrayContaining([
      'records   50 % of the conversations, kept for 1 day',
      'feedback  POST /v1/feedback with the key in TEMPER_FEEDBACK_KEY',
    ]),
  );
  expect(servedJson(given)).toMatchObject({
    recording: { share: 0.5, days: 1, feedbackKeyVariable: 'TEMPER_FEEDBACK_KEY' },
  });
  const closed = servedLines({ ...served, recording: plan('--record') }).find((line) => line.startsWith('feedback'));
  expect(closed).toContain('closed; set TEMPER_FEEDBACK_KEY');
});

test('flags of recording are checked before anything is started', async () => {
  const complain = (words: string[], env: object = {}) =>
    complaintIn(project, ['serve', 'demo@1', ...words], { env: { TEMPER_SERVE_KEY: 'k', ...env } });
  expect(await complain(['--record-days', '3'])).toContain('--record-days has no effect without --record');
  expect(await complain(['--record', '--redact', 'none.ts'])).toContain('none.ts must be a file');
  expect(await complain(['--record', '--record-share', '2'])).toContain('--record-share');
  expect(await complain(['--record'], { TEMPER_FEEDBACK_KEY: 'k' })).toContain('another key than that of the model');
});

test('a port that is taken leaves no recording open', async () => {
  await makeRun(await openStore(join(project, '.temper', 'store')), { steps: 1 });
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void [vi.useRealTimers(), other.close()]);
  const { port } = other.address() as { port: number };
  const words = ['serve', 'demo@1', '--record', '--record-days', '1', '--port', String(port)];
  const { exitCode, stderr } = await runCli(project, words, { env: { TEMPER_SERVE_KEY: 'k' } });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(String(port))]);
  expect(vi.getTimerCount()).toBe(0);
});
