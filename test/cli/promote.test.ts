import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { openStore } from '../../store/bytes/open-store.ts';
import { giveFeedback } from '../../store/records/production/feedback.ts';
import { findCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { RecordingWriter, type NewRecording } from '../../store/records/production/recordings.ts';
import type { Store } from '../../store/store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { callOf, user } from '../store/records/made-attempt.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, runCli } from './run-cli.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 5, evals: { 2: 0.5, 3: 0.75 } });
});

const complain = (...words: string[]) => complaintIn(project, words);
const ran = async (...words: string[]): Promise<string> => {
  const { exitCode, stdout, stderr } = await runCli(project, words);
  expect([exitCode, stderr]).toEqual([0, '']);
  return stdout;
};
const production = async () => (await findCheckpoint(store, { run: 'demo', branch: null, step: 'production' })).step;

test('checkpoints are promoted and taken back, each with who, when, why and how good it is', async () => {
  expect(await ran('production', 'list', 'demo')).toBe(
    'nothing of demo was promoted; promote a checkpoint: temper production promote demo@STEP',
  );
  expect(await ran('production', 'promote', 'demo@2', '--by', 'ann')).toBe(
    'demo@2 is demo@production now\nserve it with temper serve demo@production',
  );
  expect(await production()).toBe(2);
  expect(await ran('production', 'promote', 'demo@best', '--by', 'bob', '--reason', 'wins more')).toBe(
    'demo@3 is demo@production now, demo@2 was before',
  );
  expect(await ran('production', 'promote', 'demo@3')).toContain('demo@3 is demo@production already');
  expect(await ran('production', 'back', 'demo', '--by', 'ann', '--reason', 'too curt')).toBe(
    'demo@2 is demo@production now, demo@3 was before',
  );
  expect(await production()).toBe(2);
  const listed = JSON.parse(await ran('production', 'list', 'demo', '--json')) as object[];
  expect(listed).toMatchObject([
    { number: 1, kind: 'promoted', checkpoint: 'demo@2', by: 'ann', evaluation: { reward: 0.5 }, isProduction: true },
    { number: 2, kind: 'promoted', checkpoint: 'demo@3', by: 'bob', reason: 'wins more', evaluation: { reward: 0.75 } },
    { number: 3, kind: 'back', checkpoint: 'demo@2', by: 'ann', reason: 'too curt' },
  ]);
  const shown = (await ran('production', 'list', 'demo')).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  expect(shown.split('\n')[2]).toMatch(/^ +TIME +promoted +demo@3 +0\.75\d* +bob +wins more/);
});

test('a checkpoint of another run may become production, and the alias names it in every command', async () => {
  await makeRun(store, { run: 'nightly-3', steps: 2, seed: 2 });
  await ran('production', 'promote', 'nightly-3@2', '--to', 'demo');
  expect(await ran('checkpoints', 'demo@production')).toContain('2');
  expect(await complain('verify', 'demo@production')).toContain('pass nightly-3@2');
  expect(await complain('checkpoints', 'demo~1@production')).toContain('pass demo@production');
});

test('what is in production, and what it could go back to, is not pruned', async () => {
  for (const step of [1, 2, 3]) await ran('production', 'promote', `demo@${step}`);
  const { kept } = JSON.parse(await ran('checkpoints', 'prune', 'demo', '--keep-last', '1', '--dry-run', '--json')) as {
    kept: { step: number; because: string }[];
  };
  const reasons = new Map(kept.map(({ step, because }) => [step, because]));
  expect(reasons.get(3)).toBe('it is demo@production');
  expect(reasons.get(2)).toBe('temper production back demo returns to it');
  expect(reasons.has(1)).toBe(false);
});

test('a run that is production of another one is not deleted, and one with a production of its own goes with all of it', async () => {
  await makeRun(store, { run: 'nightly-3', steps: 2, seed: 2 });
  await ran('production', 'promote', 'nightly-3@2', '--to', 'demo');
  expect(await complain('checkpoints', 'delete', 'nightly-3', '--all')).toContain('it is demo@production');
  expect(await complain('checkpoints', 'delete', 'demo', '--all')).toContain('pass --with-production');
  await ran('checkpoints', 'delete', 'demo', '--all', '--with-production');
  const left = [];
  for await (const { key } of store.describe('production')) left.push(key);
  expect(left).toEqual([]);
});

test('what is wrong is refused in one line, and nothing is promoted', async () => {
  expect(await complain('production', 'promote', 'demo@9')).toContain('demo@9 is not committed');
  expect(await complain('production', 'promote', 'other@1')).toContain('no run other in the store');
  expect(await complain('production', 'promote', 'demo@2', '--to', 'other')).toContain('no run other in the store');
  expect(await complain('production', 'back', 'demo')).toContain('demo@production must have an earlier promotion');
  expect(await complain('checkpoints', 'demo@production')).toContain(
    'demo@production names no checkpoint (nothing was promoted)',
  );
});

const answer = (text: string, more: Partial<NewRecording> = {}): NewRecording => ({
  conversation: null,
  api: 'responses',
  policy: 'demo@2',
  untrainable: null,
  call: callOf([user(text)], `re: ${text}`, { key: text, adapterSha256: null }),
  ...more,
});

test('temper production counts what was recorded, and shows a conversation', async () => {
  expect(await ran('production', 'demo')).toBe(
    'nothing of demo was promoted\nnothing is recorded; record with temper serve demo --record',
  );
  const writer = new RecordingWriter(store, 'demo');
  const first = await writer.append(answer('a'));
  await writer.append(answer('b', { conversation: first.conversation, policy: 'demo@3' }));
  await writer.append(answer('c', { untrainable: 'redacted', conversation: 'ticket 7' }));
  await writer.close();
  const give = (conversation: string, id: string | null, reward: number) =>
    giveFeedback(store, 'demo', conversation, { answer: id, reward, label: null, comment: 'so so' });
  await give(first.conversation, first.id, 0.25);
  await give('ticket 7', null, 1);
  expect(JSON.parse(await ran('production', 'demo', '--json'))).toMatchObject({
    run: 'demo',
    production: null,
    answers: 3,
    conversations: 2,
    policies: [
      {
        policy: 'demo@2',
        answers: 2,
        conversations: 2,
        rated: 2,
        reward: 0.625,
        untrainable: { redacted: 1, parameters: 0 },
      },
      { policy: 'demo@3', answers: 1, rated: 0, reward: null },
    ],
    rated: [
      { conversation: first.conversation, answers: 2, reward: 0.25, trainedBy: null, feedback: [{ comment: 'so so' }] },
      { conversation: 'ticket 7', answers: 1, reward: 1 },
    ],
  });
  const shown = await ran('production', 'demo');
  expect(shown).toContain('3 answers of 2 conversations, 2 with feedback, 0 trained');
  for (const id of [first.id, `resp_${first.id}`, first.conversation]) {
    const text = await ran('production', 'demo', id);
    for (const part of ['user: a', 'assistant: re: a', 'demo@3', 'user: b', 'feedback 0.25', 'so so'])
      expect(text).toContain(part);
  }
  expect(await ran('production', 'demo', 'ticket 7')).toContain('not trained: redacted');
  expect(await complain('production', 'demo', 'ticket 8')).toContain('must be recorded under demo');
});
