/** Rewards and comparisons as JSON, for programs that have the review key. */
import { showValue } from '../../core/contract/failures.ts';
import { conversationOf } from '../../store/records/judging/conversation.ts';
import type { GivenReward } from '../../store/records/rewards/given-problems.ts';
import { HttpRefusal } from '../../play/transports/http-server.ts';
import { readAwaited } from '../../views/attempts/awaited.ts';
import type { PairQuestion, AskedAttempt } from './questions/questions.ts';
import { isPairAnswer } from './reviewer-routes.ts';
import { readFields, readIdempotencyKey, readText, wrong, type Asked, type Reply, type Route } from './route.ts';

const REWARD_MEMBERS = ['reward', 'metrics', 'by', 'note', 'idempotencyKey'];
const COMPARISON_MEMBERS = ['left', 'right', 'answer', 'by', 'note', 'idempotencyKey'];
/** Conversations are long: a program asks again once it has answered these. */
const PAIRS_AT_ONCE = 50;

const REWARDS = /^\/v1\/runs\/([^/]+)\/rewards$/;
const REWARD = /^\/v1\/runs\/([^/]+)\/attempts\/([^/]+)\/reward$/;
const COMPARISONS = /^\/v1\/runs\/([^/]+)\/comparisons$/;

export const JSON_ROUTES: readonly Route[] = [
  { method: 'GET', path: REWARDS, kind: 'json', access: 'key', answer: answerList },
  { method: 'POST', path: REWARD, kind: 'json', access: 'key', answer: giveReward },
  { method: 'GET', path: COMPARISONS, kind: 'json', access: 'key', answer: listPairs },
  { method: 'POST', path: COMPARISONS, kind: 'json', access: 'key', answer: compare },
];

async function answerList({ parts: [run = ''], desk }: Asked): Promise<Reply> {
  await desk.requireRun(run);
  return { status: 200, json: (await readAwaited(desk.store, run)) ?? { run, awaited: [], completeGroups: 0 } };
}

async function giveReward(asked: Asked): Promise<Reply> {
  const [run = '', attempt = ''] = asked.parts;
  const fields = readFields(asked.body, REWARD_MEMBERS);
  const given = {
    attempt,
    reward: fields['reward'],
    ...((fields['metrics'] ?? null) !== null && { metrics: fields['metrics'] }),
    by: readText(fields, 'by'),
    note: readText(fields, 'note'),
    key: readIdempotencyKey(asked, fields),
  } as GivenReward;
  const outcome = await asked.desk.give(run, given);
  return { status: 200, json: { run, attempt, reward: given.reward, outcome } };
}

async function listPairs({ parts: [run = ''], query, desk }: Asked): Promise<Reply> {
  const by = readText({ by: query.get('by') }, 'by');
  const { review } = await desk.readRules(run);
  if (review?.pairwise !== true)
    throw new HttpRefusal(
      409,
      `the run ${run} is not reviewed by pairs; GET /v1/runs/${run}/rewards lists its attempts`,
      'not_pairs',
    );
  const pairs = await desk.questions.listPairs(run, review, by);
  const shown = pairs.slice(0, PAIRS_AT_ONCE).map(pairJson);
  return { status: 200, json: { run, question: review.question, open: pairs.length, pairs: shown } };
}

function pairJson({ scenarioId, left, right }: PairQuestion): object {
  return { scenario: scenarioId, left: attemptJson(left), right: attemptJson(right) };
}

function attemptJson({ id, record }: AskedAttempt): object {
  const { messages, additionalHistories } = conversationOf(record);
  return { attempt: id, messages, additionalHistories };
}

async function compare(asked: Asked): Promise<Reply> {
  const {
    parts: [run = ''],
    desk,
    body,
  } = asked;
  const fields = readFields(body, COMPARISON_MEMBERS);
  const [left, right] = [readText(fields, 'left') ?? '', readText(fields, 'right') ?? ''];
  const { answer } = fields;
  if (!isPairAnswer(answer))
    throw wrong(`answer must be "left", "right" or "equal", got ${showValue(answer)}; send one of them`);
  const by = readText(fields, 'by');
  const note = readText(fields, 'note');
  const key = readIdempotencyKey(asked, fields);
  const outcome = await desk.compare(run, { left, right, answer, by, note, key });
  return { status: 200, json: { run, left, right, answer, outcome } };
}
