import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sampleEvenly } from '../../core/numbers/statistics.ts';
import type { AttemptsView, GroupView } from '../../views/api/attempt-views.ts';
import type { ServerInfo } from '../../views/api/requests.ts';
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import { embedJson, htmlText, markup } from '../../cli/pages/html.ts';
import { writeFixtureRun } from './fixture-store.ts';
import { runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const HOSTILE = '</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> " onload="alert(3)';

async function writeReport(options: Parameters<typeof writeFixtureRun>[1] = {}): Promise<string> {
  const project = temporaryFolder();
  await writeFixtureRun(project, options);
  const { exitCode, stdout } = await runCli(project, ['report', 'demo']);
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'report: .temper/reports/demo.html' });
  return readFile(join(project, '.temper', 'reports', 'demo.html'), 'utf8');
}

/** The text between the page's script tags, as a browser would find them. */
function scriptBodies(page: string): string[] {
  return [...page.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/gi)].map((match) => match[1]!);
}

/** Answers of the page by their paths: data and the page's own script are its only scripts. */
function answersIn(page: string): Readonly<Record<string, unknown>> {
  const bodies = scriptBodies(page);
  expect(bodies).toHaveLength(2);
  const { home, answers } = JSON.parse(bodies[0]!) as { home: string; answers: Record<string, unknown> };
  expect(home).toBe('/runs/demo');
  return answers;
}

const groupsIn = (answers: Readonly<Record<string, unknown>>): GroupView[] =>
  Object.entries(answers).flatMap(([path, answer]) => (path.includes('/groups/') ? [answer as GroupView] : []));

const leftOutIn = (answers: Readonly<Record<string, unknown>>): string | null | undefined =>
  (answers['info'] as ServerInfo).leftOut;

test('what a model wrote is text, never markup', async () => {
  const page = await writeReport({
    steps: 3,
    answer: HOSTILE,
    state: { notes: [HOSTILE], failure: HOSTILE, state: 'failed' },
  });
  expect(page).not.toContain('<img');
  expect(page).not.toContain('<script>alert');
  // Nothing that was written by a model has opened a third script.
  const answers = answersIn(page);
  const texts = groupsIn(answers).flatMap(({ attempts }) => attempts.map(({ turns }) => turns[0]!.answer.text));
  expect(texts).toContain(HOSTILE);
  expect((answers['runs/demo'] as RunView).state).toMatchObject({ notes: [HOSTILE], failure: HOSTILE });
});

test('what a judge said stands beside the attempt, as text, with its score and the agent’s own reward', async () => {
  const page = await writeReport({ steps: 1, explanation: HOSTILE });
  expect(page).not.toContain('<img');
  const answers = answersIn(page);
  const { attempts } = answers['runs/demo/groups/0.1.0'] as GroupView;
  expect(attempts[2]).toMatchObject({ row: { reward: 0.25 }, explanation: HOSTILE, scores: { rulerScore: 0.25 } });
  expect(attempts[2]).toHaveProperty('scores.agentReward');
  const held = answers['runs/demo/groups/eval.0.0'] as GroupView;
  expect(held.attempts[0]).toMatchObject({ explanation: null });
});

test('rewards that rewardGroup gave by name stand beside the attempt', async () => {
  const namedRewards = Array.from({ length: 8 }, (_, index) => ({ novel: index }));
  const answers = answersIn(await writeReport({ steps: 1, verdict: { judge: 'rewardGroup', namedRewards } }));
  const { attempts } = answers['runs/demo/groups/0.1.0'] as GroupView;
  expect(attempts[3]).toHaveProperty(['scores', 'reward/novel'], 3);
});

test('the page may load nothing, and runs only its own scripts', async () => {
  const page = await writeReport({ steps: 2 });
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!.replaceAll('&#39;', "'");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain('unsafe');
  const [, ...scripts] = scriptBodies(page);
  const styles = [...page.matchAll(/<style>([\s\S]*?)<\/style>/g)].map((match) => match[1]!);
  expect([scripts.length, styles.length]).toEqual([1, 1]);
  for (const source of [...scripts, ...styles]) {
    expect(policy).toContain(createHash('sha256').update(source).digest('base64'));
  }
  expect(page).not.toMatch(/(?:src|href)=["']?https?:/);
  const links = page.match(/<(?:link|img|iframe)[^>]*>/g) ?? [];
  expect(links).toEqual(['<link rel="icon" href="data:,">']);
});

test('the page has what was told to the run, and the attempts of the branches that it stands on', async () => {
  const lineage = [{ branch: 1, fromBranch: 0, fromStep: 2 }];
  const changes = [
    { setting: 'learningRate', from: 0.005, to: 0.001, branch: 1, step: 3, reason: 'it diverged' } as const,
  ];
  const answers = answersIn(await writeReport({ steps: 3, state: { branch: 1, lineage, changes, evals: [] } }));
  expect((answers['runs/demo'] as RunView).state).toMatchObject({ branch: 1, lineage, changes });
  // The store of the fixture holds branch 0 alone: its steps up to 2 are this run's, its step 3 is not.
  expect(leftOutIn(answers)).toMatch(/none of step 3/);
  expect(answers).not.toHaveProperty('runs/demo/groups/0.3.0');
  expect(Object.keys(answers)).toEqual(expect.arrayContaining(['runs/demo/groups/0.1.0', 'runs/demo/groups/0.2.0']));
});

test('a long run is shown by some of its steps, and says so', async () => {
  const answers = answersIn(await writeReport({ steps: 30 }));
  expect(leftOutIn(answers)).toMatch(/^demo: 8 of 30 steps, 48 of 64 groups, /);
  const groups = groupsIn(answers).map(({ id }) => id);
  const trained = groups.filter((id) => !id.startsWith('eval.'));
  expect(trained).toEqual(
    [1, 5, 9, 13, 18, 22, 26, 30].flatMap((step) => [0, 1, 2, 3, 4, 5].map((at) => `0.${step}.${at}`)),
  );
  expect(groups.filter((id) => id.startsWith('eval.'))).toEqual(['eval.0.0', 'eval.0.30']);
  // The best and the worst attempts of an evaluation with more than are shown.
  const last = answers['runs/demo/groups/eval.0.30'] as GroupView;
  expect([last.attempts.length, last.leftOut]).toEqual([32, 8]);
  expect(last.attempts.at(-1)!.row.reward).toBeGreaterThan(last.attempts[0]!.row.reward!);
  // The list of attempts has those that are shown, and advisories name no others.
  const { rows, total } = answers['runs/demo/attempts'] as AttemptsView;
  expect(rows).toHaveLength(groupsIn(answers).flatMap(({ attempts }) => attempts).length);
  expect(total).toBeGreaterThan(rows.length);
  const evidence = (answers['runs/demo'] as RunView).advisories.flatMap(({ attempts }) => attempts);
  expect(evidence.filter((id) => !rows.some((row) => row.id === id))).toEqual([]);
});

test('a report is no larger than can be mailed, whatever the attempts are', async () => {
  const page = await writeReport({ steps: 30, answer: 'long '.repeat(20_000) });
  expect(page.length).toBeLessThan(10_000_000);
  expect(leftOutIn(answersIn(page))).toMatch(/of 64 groups/);
});

test('a run without a finished step has a report too', async () => {
  const state = { step: 0, steps: 5, state: 'running' as const, evals: [], evalBefore: null, evalAfter: null };
  const answers = answersIn(await writeReport({ steps: 0, state }));
  expect((answers['runs/demo/curve'] as CurveView).steps).toEqual([]);
});

test('a sample keeps the first and the last', () => {
  expect(sampleEvenly([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 3)).toEqual([1, 6, 10]);
  expect(sampleEvenly([1, 2], 3)).toEqual([1, 2]);
});

test('templates escape every value but their own', () => {
  expect(htmlText(markup`<p>${'<b>'}${markup`<i>${"'"}</i>`}${['&', 1]}</p>`)).toBe(
    '<p>&lt;b&gt;<i>&#39;</i>&amp;1</p>',
  );
  expect(htmlText(embedJson({ a: '</script>' }))).toBe('{"a":"\\u003c/script>"}');
});
