/** The page behind a signed link: a person reads one attempt and gives its reward, once. */
import { createHash } from 'node:crypto';
import { conversationOf } from '../../store/records/judging/conversation.ts';
import { HttpRefusal } from '../../play/transports/http-server.ts';
import { attemptPage, type GivenView } from './pages/attempt-page.ts';
import { noticePage } from './pages/page.ts';
import { FIELDS, SCORE } from './pages/reward-form.ts';
import { readForm, readText, wrong, type Asked, type Reply, type Route } from './route.ts';

const PATH = /^\/r\/([\w.-]+)$/;

export const LINK_ROUTES: readonly Route[] = [
  { method: 'GET', path: PATH, kind: 'page', access: 'link', answer: showAttempt },
  { method: 'POST', path: PATH, kind: 'page', access: 'link', answer: takeDecision },
];

async function showAttempt(asked: Asked): Promise<Reply> {
  const { run, attempt, desk } = opened(asked);
  const { scenarioId, record, given, refusal } = await desk.readAttempt(run, attempt);
  const own: GivenView | null = given?.key === linkKey(asked) ? given : null;
  const view = { run, attempt, scenarioId, conversation: conversationOf(record), refusal };
  return { status: 200, page: attemptPage({ ...view, given: own, isReplacing: given !== null && own === null }) };
}

/** The link itself is the idempotency key: a second use gives nothing, and is refused with another value. */
async function takeDecision(asked: Asked): Promise<Reply> {
  const { run, attempt, desk } = opened(asked);
  const fields = readForm(asked);
  const decision = {
    attempt,
    reward: readDecision(fields),
    by: readText(fields, FIELDS.by),
    note: readText(fields, FIELDS.note),
    key: linkKey(asked),
  };
  const outcome = await desk.give(run, decision).catch((error: unknown) => {
    throw isReplay(error) ? new HttpRefusal(409, REPLAYED, 'used') : error;
  });
  const told =
    outcome === 'given' ? 'The reward was given. You can close this page.' : 'This reward had been given before.';
  return { status: 200, page: noticePage('Thank you', told) };
}

const REPLAYED = 'this link has given another reward, and gives no second one; ask for a new link';

function isReplay(error: unknown): boolean {
  return error instanceof HttpRefusal && error.code === 'key_reused';
}

function opened({ scope, desk }: Asked): { run: string; attempt: string; desk: Asked['desk'] } {
  return { run: scope?.run ?? '', attempt: scope?.attempt ?? '', desk };
}

/** Recorded with the reward, so it must not be the link, which is a key. */
function linkKey({ parts: [token = ''] }: Asked): string {
  return `link:${createHash('sha256').update(token).digest('hex').slice(0, 32)}`;
}

/** Approve, reject, or the score field. */
export function readDecision(fields: Readonly<Record<string, unknown>>): number {
  const pressed = fields[FIELDS.reward];
  if (pressed === '0' || pressed === '1') return Number(pressed);
  const score = fields[FIELDS.score];
  if (pressed !== SCORE || typeof score !== 'string' || score.trim() === '')
    throw wrong('a decision must be approve, reject or a score, got none of them; go back and choose one');
  return Number(score);
}
