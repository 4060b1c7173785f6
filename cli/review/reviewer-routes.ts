/** The pages behind a reviewer's link: one question of a run after the other. The link opens nothing else. */
import type { PairAnswer } from '../../core/numbers/bradley-terry.ts';
import { HttpRefusal } from '../../play/transports/http-server.ts';
import { readDecision } from './link-routes.ts';
import { noticePage } from './pages/page.ts';
import { AGAIN, namePage, QUESTION_FIELDS as FIELDS, questionPage, refusedPage, SKIP } from './pages/question-page.ts';
import { pairId } from './questions/questions.ts';
import { readForm, readText, wrong, type Asked, type Reply, type Route } from './route.ts';

const PATH = /^\/review\/([\w.-]+)$/;

export const REVIEWER_ROUTES: readonly Route[] = [
  { method: 'GET', path: PATH, kind: 'page', access: 'run', answer: showQuestion },
  { method: 'POST', path: PATH, kind: 'page', access: 'run', answer: takeAnswer },
];

async function showQuestion({ scope, query, desk }: Asked): Promise<Reply> {
  const run = scope?.run ?? '';
  const by = readText({ by: query.get('by') }, 'by');
  if (by === null) return { status: 200, page: namePage(run) };
  const next = await desk.questions.next(run, await desk.readRules(run), by);
  return { status: 200, page: questionPage({ ...next, run, by }) };
}

type Fields = ReturnType<typeof readForm>;

/** Answers with the next question, by a redirect: a reloaded page sends nothing again. */
async function takeAnswer(asked: Asked): Promise<Reply> {
  const { scope, desk } = asked;
  const run = scope?.run ?? '';
  const fields = readForm(asked);
  const by = readText(fields, FIELDS.by);
  if (by === null) throw wrong('an answer must have the name of its reviewer, got none; open the link again');
  const next = `?by=${encodeURIComponent(by)}`;
  try {
    if (fields[FIELDS.answer] === AGAIN) desk.questions.queueOf(run).askAgain(by);
    else await (fields[FIELDS.attempt] === undefined ? takeComparison : takeScore)(asked, run, by, fields);
  } catch (error) {
    if (!(error instanceof HttpRefusal) || error.status !== CONFLICT) throw error;
    return { status: CONFLICT, page: refusedPage(error.message, next) };
  }
  return { status: 303, headers: { location: next }, page: noticePage('Thank you', 'The next question follows.') };
}

const CONFLICT = 409;

async function takeComparison({ desk }: Asked, run: string, by: string, fields: Fields): Promise<void> {
  const [left, right] = [readId(fields, FIELDS.left), readId(fields, FIELDS.right)];
  const id = pairId(left, right);
  const answer = fields[FIELDS.answer];
  if (answer === SKIP) return desk.questions.queueOf(run).skip(id, by);
  if (!isPairAnswer(answer))
    throw wrong('an answer must be left, right or equal, got none of them; go back and choose one');
  await desk.compare(run, { left, right, answer, by, note: null, key: null });
  desk.questions.queueOf(run).release(id, by);
}

async function takeScore({ desk }: Asked, run: string, by: string, fields: Fields): Promise<void> {
  const attempt = readId(fields, FIELDS.attempt);
  if (fields[FIELDS.reward] === SKIP) return desk.questions.queueOf(run).skip(attempt, by);
  const note = readText(fields, FIELDS.note);
  await desk.give(run, { attempt, reward: readDecision(fields), by, note, key: null });
  desk.questions.queueOf(run).release(attempt, by);
}

function readId(fields: Fields, name: string): string {
  return readText(fields, name) ?? '';
}

export function isPairAnswer(value: unknown): value is PairAnswer {
  return value === 'left' || value === 'right' || value === 'equal';
}
