import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sampleEvenly } from '../../core/numbers/statistics.ts';
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

test('what a model wrote is text, never markup', async () => {
  const page = await writeReport({
    steps: 3,
    answer: HOSTILE,
    state: { notes: [HOSTILE], failure: HOSTILE, state: 'failed' },
  });
  expect(page).not.toContain('<img');
  expect(page).not.toContain('<script>alert');
  // Data and the page's own script: nothing that was written by a model has opened a third.
  const bodies = scriptBodies(page);
  expect(bodies).toHaveLength(2);
  const data = JSON.parse(bodies[0]!) as {
    attemptSets: { groups: { attempts: { turns: { answer: { text: string } }[] }[] }[] }[];
  };
  const answers = data.attemptSets.flatMap(({ groups }) =>
    groups.flatMap(({ attempts }) => attempts.map(({ turns }) => turns[0]!.answer.text)),
  );
  expect(answers).toContain(HOSTILE);
});

test('what a judge said stands beside the attempt, as text, with its score and the agent’s own reward', async () => {
  const page = await writeReport({ steps: 1, explanation: HOSTILE });
  expect(page).not.toContain('<img');
  const bodies = scriptBodies(page);
  expect(bodies).toHaveLength(2);
  const { attemptSets } = JSON.parse(bodies[0]!) as {
    attemptSets: { kind: string; groups: { attempts: object[] }[] }[];
  };
  const attempts = attemptSets.find(({ kind }) => kind === 'step')!.groups[0]!.attempts;
  expect(attempts[2]).toMatchObject({ row: { reward: 0.25 }, explanation: HOSTILE, scores: { rulerScore: 0.25 } });
  expect(attempts[2]).toHaveProperty('scores.agentReward');
  const held = attemptSets.find(({ kind }) => kind === 'eval')!.groups[0]!.attempts;
  expect(held[0]).toMatchObject({ explanation: null });
});

test('rewards that rewardGroup gave by name stand beside the attempt', async () => {
  const namedRewards = Array.from({ length: 8 }, (_, index) => ({ novel: index }));
  const page = await writeReport({ steps: 1, verdict: { judge: 'rewardGroup', namedRewards } });
  const { attemptSets } = JSON.parse(scriptBodies(page)[0]!) as {
    attemptSets: { kind: string; groups: { attempts: object[] }[] }[];
  };
  const [group] = attemptSets.find(({ kind }) => kind === 'step')!.groups;
  expect(group?.attempts[3]).toHaveProperty(['scores', 'reward/novel'], 3);
});

test('the page may load nothing, and runs only its own scripts', async () => {
  const page = await writeReport({ steps: 2 });
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!.replaceAll('&#39;', "'");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain('unsafe');
  const [, ...scripts] = scriptBodies(page);
  const styles = [...page.matchAll(/<style>([\s\S]*?)<\/style>/g)].map((match) => match[1]!);
  for (const source of [...scripts, ...styles]) {
    expect(policy).toContain(createHash('sha256').update(source).digest('base64'));
  }
  expect(page).not.toMatch(/(?:src|href)=["']?https?:/);
  expect(page).not.toContain('<link');
});

test('the page says what was told to the run, and shows the attempts of the branches that it stands on', async () => {
  const lineage = [{ branch: 1, fromBranch: 0, fromStep: 2 }];
  const changes = [
    { setting: 'learningRate', from: 0.005, to: 0.001, branch: 1, step: 3, reason: 'it diverged' } as const,
  ];
  const page = await writeReport({ steps: 3, state: { branch: 1, lineage, changes, evals: [] } });
  expect(page).toContain('changed: learningRate 0.005 → 0.001 from step 3 on, because: it diverged');
  expect(page).toContain('current position: branch 1, from step 2 of branch 0');
  // The store of the fixture holds branch 0 alone: its steps up to 2 are this run's, its step 3 is not.
  expect(page).toContain('The attempts of step 3 are not shown: the store has no copy of them.');
  expect(page).not.toContain('The attempts of step 2 are not shown');
});

test('a long run is shown by some of its steps, and says so', async () => {
  const page = await writeReport({ steps: 30 });
  expect(page).toContain('This page shows the attempts of 8 steps out of 30.');
  const { attemptSets } = JSON.parse(scriptBodies(page)[0]!) as {
    attemptSets: { kind: string; step: number; leftOut: string | null }[];
  };
  const shown = attemptSets.filter(({ kind }) => kind === 'step');
  expect(shown.map(({ step }) => step)).toEqual([1, 5, 9, 13, 18, 22, 26, 30]);
  expect(shown[0]!.leftOut).toBe('6 of 8 groups are shown');
  expect(attemptSets.filter(({ kind }) => kind === 'eval').map(({ step }) => step)).toEqual([0, 30]);
});

test('a run without a finished step has a report too', async () => {
  const page = await writeReport({
    steps: 0,
    state: { step: 0, steps: 5, state: 'running', evals: [], evalBefore: null, evalAfter: null },
  });
  expect(page).toContain('No step is finished yet.');
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
