/** Comparisons as JSON, for programs that have the review key. */
import { conversationOf } from '../../store/records/judging/conversation.ts';
import { HttpRefusal } from '../../play/transports/http-server.ts';
import type { PairQuestion, AskedAttempt } from './questions/questions.ts';
import { readFields, readIdempotencyKey, readText, wrong } from './read-body.ts';
import { isPairAnswer } from './reviewer-routes.ts';
import type { Asked, Reply, Route } from './route.ts';

const PATH = /^\/v1\/runs\/([^/]+)\/comparisons$/;
const MEMBERS = ['left', 'right', 'answer', 'by', 'note', 'idempotencyKey'];
/** Conversations are long: a program asks again once it has answered these. */
const PAIRS_AT_ONCE = 50;

export const COMPARISON_ROUTES: readonly Route[] = [
  { method: 'GET', path: PATH, kind: 'json', access: 'key', answer: listPairs },
  { method: 'POST', path: PATH, kind: 'json', access: 'key', answer: compare },
];

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
  const fields = readFields(body, MEMBERS);
  const [left, right] = [readText(fields, 'left') ?? '', readText(fields, 'right') ?? ''];
  const { answer } = fields;
  if (!isPairAnswer(answer))
    throw wrong(
      `answer must be "left", "right" or "equal", got ${(JSON.stringify(answer) ?? 'nothing').slice(0, 100)}; send one of them`,
    );
  const by = readText(fields, 'by');
  const note = readText(fields, 'note');
  const key = readIdempotencyKey(asked, fields);
  const outcome = await desk.compare(run, { left, right, answer, by, note, key });
  return { status: 200, json: { run, left, right, answer, outcome } };
}
