/** `npm start` as a newcomer meets it: interrupted, gone on with, finished, looked at, and started once more. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import type { BlobRef, StepSummary } from '../../core/contract/contract.ts';
import type { StackFile } from '../../workers/local-stack/protocol/stack-file.ts';
import { type Ended, linesOf, linkCheckout } from '../stack.ts';
import { until } from '../until.ts';
import { PAGES, readPage } from '../docs/markdown.ts';
import { namesOfPage } from '../docs/metric-names.ts';
import { freePort } from '../free-port.ts';
import { isNightly } from '../run/tier.ts';
import { startLoad } from './serving-load.ts';

/**
 * The whole demo at night; on a landing, steps that are enough to see it learn: with three seeds they won 0.28 to 0.32
 * more of the held-out games, and ended at 0.785 to 0.82, with 0.05 to 0.06 illegal moves.
 */
const STEPS = isNightly() ? Number(/--steps (\d+)/.exec(readFileSync('package.json', 'utf8'))![1]) : 16;
const LINE = ['npm', 'start', ...(isNightly() ? [] : ['--', '--steps', `${STEPS}`])];
const [LEAST_WON, LEAST_GAIN, MOST_ILLEGAL] = isNightly() ? [0.8, 0.25, 0.04] : [0.68, 0.15, 0.12];
const INTERRUPT_AFTER = 5;
const CLIENTS = 8;
const KEYS = { TEMPER_SERVE_KEY: 'a key of the model', TEMPER_FEEDBACK_KEY: 'a key of feedback' };
const METRICS_PORT = await freePort();
const checkout = linkCheckout(
  KEYS,
  `export default { localStack: { standby: false }, metrics: { port: ${METRICS_PORT} } };\n`,
);
const outputs: string[] = [];

afterAll(() => checkout.close());

const toldSteps = (text: string): number[] =>
  [...text.matchAll(new RegExp(`^step +(\\d+)/${STEPS} `, 'gm'))].map(([, step]) => Number(step));

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

function expectDone({ code, stdout, stderr }: Ended): void {
  expect(code, stdout + stderr).toBe(0);
  expect(stdout).toContain('report   .temper/reports/demo.html');
  expect(stdout).not.toContain('warning: ');
  expect(linesOf(stdout).slice(-3)).toEqual([
    expect.stringMatching(/^before: 0\.\d+ win.* · after: [01]\.\d+ win.*\(200 held-out scenarios, 95 % intervals\)$/),
    'next: npx temper ui shows the run in the browser',
    'write your own agent: npx temper init FOLDER',
  ]);
}

/** Prometheus's view of a run under way: documented names, from each process, that agree with each other. */
async function expectMetrics(): Promise<void> {
  const address = `http://127.0.0.1:${METRICS_PORT}/metrics`;
  expect((await fetch(address)).status).toBe(401);
  const key = readFileSync(checkout.path('engine.key'), 'utf8');
  const samplesAt = async (url: string): Promise<string[]> => {
    const text = await (await fetch(url, { headers: { authorization: `Bearer ${key}` } })).text();
    return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
  const { ports } = JSON.parse(readFileSync(checkout.path('stack.json'), 'utf8')) as StackFile;
  const ofWorker = await samplesAt(address);
  const ofEngine = await samplesAt(`http://127.0.0.1:${ports?.engine}/metrics`);
  const lines = [...ofWorker, ...ofEngine];
  const known = new Set(['docs/metrics.md', 'docs/http-api.md'].flatMap(namesOfPage));
  // The engine's counters are not listed one by one.
  const listed = [...ofWorker, ...ofEngine.filter((line) => !/_total\{/.test(line))];
  const named = listed.filter((line) => /^(temper_|vllm:)/.test(line));
  const names = named.map((line) => /^[a-z0-9_:]+/.exec(line)![0].replace(/_(bucket|sum|count)$/, ''));
  expect([...new Set(names)].filter((name) => !known.has(name))).toEqual([]);
  const valueOf = (name: string, ...labels: string[]): number => {
    const found = lines.filter((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)));
    expect(found.length, `${name} ${labels.join(' ')}`).toBe(1);
    return Number(found[0]!.split(' ').at(-1));
  };
  const step = valueOf('temper_run_step', 'run="demo"');
  expect(step).toBeGreaterThanOrEqual(INTERRUPT_AFTER - 1);
  const recorded = (outcome: string) => valueOf('temper_run_steps_total', `outcome="${outcome}"`);
  // A step is in the curve a moment before the state says so.
  expect([step, step + 1]).toContain(recorded('trained') + recorded('skipped'));
  expect(valueOf('temper_run_state', 'state="running"')).toBe(1);
  expect(valueOf('temper_train_executions_total', 'activity="train"', 'outcome="committed"')).toBeGreaterThan(0);
  expect(valueOf('temper_engine_call_seconds_count', 'agent="tic-tac-toe"', 'status="200"')).toBeGreaterThan(1000);
  const begins = (start: string) => lines.some((line) => line.startsWith(start));
  expect(begins('temporal_activity_schedule_to_start_latency_seconds_bucket{')).toBe(true);
  expect(begins('temper_metrics_errors_total{')).toBe(false);
}

test('Ctrl-C detaches, tells what was finished, and leaves no process behind', async () => {
  const command = checkout.start(...LINE);
  await until('some steps are told', () => toldSteps(command.stdout()).length >= INTERRUPT_AFTER);
  await expectMetrics();
  command.interrupt();
  // Npm passes on an interrupt that the program got already, where the program replaces npm's shell.
  await sleep(50);
  command.interrupt();
  const { code, stdout, stderr } = await command.ended;
  expect(code).not.toBe(0);
  expect(stdout, stderr).toContain('detached from demo');
  expect(toldSteps(stdout)).toEqual(upTo(toldSteps(stdout).length));
  await until('the stack is gone', () => checkout.alive().length === 0, 30_000);
  outputs.push(stdout);
});

test('the same line goes on where it was, and no step is told twice or left out', async () => {
  const ended = await checkout.run(...LINE);
  expectDone(ended);
  expect(ended.stdout).toMatch(new RegExp(`^demo continues after step \\d+/${STEPS}`, 'm'));
  outputs.push(ended.stdout);
  expect(outputs.flatMap(toldSteps)).toEqual(upTo(STEPS));
  expect(checkout.alive()).toEqual([]);
});

test('the agent got better, and `show --json` says so without a server', async () => {
  const { code, stdout, stderr } = await checkout.run('npx', 'temper', 'show', 'demo', '--json');
  expect(code, stderr).toBe(0);
  const shown = JSON.parse(stdout);
  const { state } = shown;
  expect(state).toMatchObject({ state: 'completed', step: STEPS, steps: STEPS });
  expect(state.wallSeconds).toBeGreaterThan(0);
  expect(shown.store).toBe(`file://${checkout.path('store')}`);
  expect(state.adapterSha256).toMatch(/^[0-9a-f]{64}$/);
  const { evalBefore, evalAfter } = state;
  console.log(
    `win rate ${evalBefore.metrics.winRate} → ${evalAfter.metrics.winRate}, illegal ${evalAfter.metrics.illegalRate}, ${state.wallSeconds} s`,
  );
  expect(evalBefore.attempts).toBe(200);
  expect(evalAfter.attempts).toBe(200);
  expect(evalBefore.metrics.winRate).toBeGreaterThanOrEqual(0.4);
  expect(evalBefore.metrics.winRate).toBeLessThanOrEqual(0.65);
  expect(evalAfter.metrics.winRate).toBeGreaterThanOrEqual(
    Math.max(LEAST_WON, evalBefore.metrics.winRate + LEAST_GAIN),
  );
  expect(evalAfter.metrics.illegalRate).toBeLessThanOrEqual(MOST_ILLEGAL);
});

test('each step changed the adapter, or says that it had nothing to train', () => {
  const [initial] = checkout.lines<{ adapter: BlobRef }>('store/runs/demo/branches/0/steps/0/manifest.json');
  const steps = checkout.lines<StepSummary>('store/runs/demo/steps/0.0.jsonl');
  expect(steps.map(({ step }) => step)).toEqual(upTo(STEPS));
  let parent = initial?.adapter.sha256;
  for (const { step, adapterSha256, groups } of steps) {
    expect(adapterSha256 === parent, `step ${step} trained ${groups} groups`).toBe(groups === 0);
    parent = adapterSha256;
  }
});

test.runIf(isNightly())('each checkpoint of the demo that a page names is there', async () => {
  const named = PAGES.flatMap((page) => [...readPage(page).matchAll(/\bdemo@(\d+)/g)].map(([, step]) => Number(step)));
  const { code, stdout, stderr } = await checkout.run('npx', 'temper', 'checkpoints', 'demo', '--json');
  expect(code, stderr).toBe(0);
  const kept = JSON.parse(stdout) as { step: number }[];
  expect(kept.map(({ step }) => step)).toEqual(expect.arrayContaining(named));
});

test('promotions while clients ask drop no request, each answer says which checkpoint made it, and all are recorded', async () => {
  const temper = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await checkout.run('npx', 'temper', ...words);
    expect(code, stderr).toBe(0);
    return stdout;
  };
  const kept = JSON.parse(await temper('checkpoints', 'demo', '--json')) as { step: number }[];
  const [first, last] = [kept.at(-1), kept[0]].map((each) => `demo@${each!.step}`) as [string, string];
  await temper('production', 'promote', first);
  const serving = checkout.start('npx', 'temper', 'serve', 'demo@production', '--record', '--port', '0', '--json');
  await until('it is served', () => serving.stdout().endsWith('}\n'));
  const { baseUrl, recording } = JSON.parse(serving.stdout()) as { baseUrl: string; recording: object };
  expect(recording).toEqual({ share: 1, days: null, feedbackKeyVariable: 'TEMPER_FEEDBACK_KEY' });
  const { tally, stop } = startLoad({
    baseUrl,
    key: KEYS.TEMPER_SERVE_KEY,
    model: 'demo@production',
    clients: CLIENTS,
  });
  const answeredBy = (policy: string) => tally.byPolicy.get(policy) ?? 0;
  const reached = (what: string, is: () => boolean) => until(what, () => tally.failures.length > 0 || is());
  await reached('some are answered', () => tally.answered >= 100);
  await temper('production', 'promote', last, '--reason', 'better');
  await reached('the promoted one answers', () => answeredBy(last) > 100);
  await temper('production', 'back', 'demo');
  const before = answeredBy(first) + CLIENTS;
  await reached('the one before answers again', () => answeredBy(first) > before);
  await stop();
  expect(tally.failures).toEqual([]);
  expect(tally.answered).toBe(answeredBy(first) + answeredBy(last));
  expect(tally.ids.size).toBe(tally.answered);
  const [id] = tally.ids;
  const rating = { method: 'POST', headers: { authorization: `Bearer ${KEYS.TEMPER_FEEDBACK_KEY}` } };
  const rated = await fetch(`${baseUrl}/feedback`, { ...rating, body: JSON.stringify({ id, label: 'thumbs_up' }) });
  expect(rated.status).toBe(200);
  serving.interrupt();
  await serving.ended;
  expect(JSON.parse(await temper('production', 'demo', '--json'))).toMatchObject({
    production: first,
    answers: tally.answered,
    policies: [
      { policy: first, answers: answeredBy(first), rated: 1, reward: 1 },
      { policy: last, answers: answeredBy(last), rated: 0 },
    ],
  });
});

test('a complete run is shown again, and no server is started', async () => {
  const stackFile = checkout.path('stack.json');
  const before = readFileSync(stackFile, 'utf8');
  const ended = await checkout.run(...LINE);
  expectDone(ended);
  expect(ended.stdout).toContain('the run demo is complete');
  expect(toldSteps(ended.stdout)).toEqual([]);
  expect(readFileSync(stackFile, 'utf8')).toBe(before);
  expect(checkout.alive()).toEqual([]);
});

test('the report is one file that loads nothing', () => {
  const folder = checkout.path('reports');
  expect(readdirSync(folder)).toEqual(['demo.html']);
  const file = join(folder, 'demo.html');
  expect(existsSync(file)).toBe(true);
  const html = readFileSync(file, 'utf8');
  const tags = html.match(/<(?:script|link|img|iframe|source|video|audio|object|embed|base)\b[^>]*>/gi) ?? [];
  expect(tags.filter((tag) => /\b(?:src|href|data|srcset)\s*=(?!\s*["']?(?:data:|#))/i.test(tag))).toEqual([]);
  expect(html).not.toMatch(
    /url\(\s*["']?(?!data:|#)|@import|\b(?:fetch|import)\s*\(\s*["'`]https?:|new (?:WebSocket|Worker)\(/i,
  );
  // Its pages are those of temper ui, which follow a server's events: here the browser lets them ask nobody.
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html) ?? [];
  expect(policy).toMatch(/^default-src &#39;none&#39;;/);
  expect(policy).not.toContain('connect-src');
});
