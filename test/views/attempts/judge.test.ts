import { afterAll, beforeAll, expect, test } from 'vitest';

import { openStore } from '../../../store/bytes/open-store.ts';
import * as layout from '../../../store/layout.ts';
import { conversationOf } from '../../../store/records/judging/conversation.ts';
import { publishVerdict } from '../../../store/records/groups/group-files.ts';
import { encodeRollouts } from '../../../store/records/groups/trajectories.ts';
import { readGroupSpending, storedAnswers, storedVerdicts } from '../../../store/records/judging/verdicts.ts';
import type { Store } from '../../../store/store.ts';
import { viewJudge } from '../../../views/attempts/group.ts';
import { requirePlayed } from '../../../views/attempts/read-played.ts';
import { judge } from '../../play/judge/judging.ts';
import { startScriptedJudge, type ScriptedJudge } from '../../play/judge/scripted-judge.ts';
import { attemptOf, callOf, FAILED, rolloutsOf, system, user } from '../../store/records/made-attempt.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let scripted: ScriptedJudge;
beforeAll(async () => {
  scripted = await startScriptedJudge();
});
afterAll(() => scripted.close());

const SHA = 'a'.repeat(64);
const task = [system('You are helpful.'), user('Say something good.')];
const attempts = [
  attemptOf(0, [callOf(task, 'good')]),
  attemptOf(1, [callOf(task, 'good good')]),
  attemptOf(2, [], FAILED),
];

/** Plays the attempts as a group, has them judged as the activity does, and reads what the page shows of it. */
async function judgeGroup(store: Store, group: number, rubric: string) {
  const place = { run: 'demo', branch: 0, step: 1, group };
  await store.publish(
    layout.rolloutsKey(place),
    await encodeRollouts(rolloutsOf(attempts, { group, inputsSha256: SHA })),
  );
  const data = attempts.filter(({ status }) => status === 'ok');
  const judgement = await judge(scripted, data.map(conversationOf), {
    options: { rubric },
    verdicts: storedVerdicts(store),
    answers: storedAnswers(store, place),
  });
  const scores = [...judgement.scores.map(({ score }) => score), null];
  await publishVerdict(store, place, {
    schema: 1,
    inputsSha256: SHA,
    rolloutsSha256: SHA,
    judge: 'scripted',
    rewards: scores,
    scores,
    explanations: [...judgement.scores.map(({ explanation }) => explanation), null],
    verdict: judgement.key,
    metrics: {},
  });
  const view = await viewJudge(store, await requirePlayed(store, { kind: 'group', ...place }), Infinity);
  return { place, view: view!, sent: scripted.asked.at(-1)!.messages };
}

test('a judge’s prompt is shown exactly as it was sent, with the answer and the scores', async () => {
  const store = await openStore(temporaryFolder());
  const { place, view, sent } = await judgeGroup(store, 0, 'What is good is better.');
  const [question] = view.questions;
  expect(question!.messages!.map(({ role, text }) => ({ role, content: text }))).toEqual(sent);
  expect(sent[0]!.content).toContain('What is good is better.');
  expect(question!.answers).toMatchObject([{ tokens: 1100, usd: null, complaint: null }]);
  expect(view).toMatchObject({ judge: 'scripted', scores: [0.1, 0.2, null] });
  // The question beside an answer is no answer, and costs nothing.
  expect(await readGroupSpending(store, place)).toMatchObject({ calls: 1 });
});

test('a verdict that was known already shows what was asked, and no answer', async () => {
  const store = await openStore(temporaryFolder());
  const first = await judgeGroup(store, 0, 'Known.');
  const { view } = await judgeGroup(store, 1, 'Known.');
  expect(view.questions).toMatchObject([{ answers: [] }]);
  expect(view.questions[0]!.messages).toEqual(first.view.questions[0]!.messages);
});

test('an unusable answer is shown with what the judge was told of it', async () => {
  const store = await openStore(temporaryFolder());
  scripted.replyNext({ text: 'Attempt one is best.' });
  const { view } = await judgeGroup(store, 0, 'Again.');
  const [question] = view.questions;
  expect(question!.answers.map(({ complaint }) => complaint)).toEqual([null, expect.stringContaining('not JSON')]);
  expect(question!.answers[0]!.text).toBe('Attempt one is best.');
});

test('a prompt that cannot be made again as it was is not shown', async () => {
  const store = await openStore(temporaryFolder());
  const { place } = await judgeGroup(store, 0, 'Changed.');
  const played = await requirePlayed(store, { kind: 'group', ...place });
  const other = { ...played.rollouts, attempts: [attemptOf(0, [callOf(task, 'something else')])] };
  const view = await viewJudge(store, { ...played, rollouts: other }, Infinity);
  expect(view!.questions.map(({ messages }) => messages)).toEqual([null]);
});
