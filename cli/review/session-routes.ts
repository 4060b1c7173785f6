/**
 * AReaL's endpoints for clients that speak its protocol. A session is one attempt that Temper has played and that awaits
 * its reward: `task_id` names it as RUN/ATTEMPT, and its key opens that reward alone. Nothing is held for it here.
 */
import { showValue } from '../../core/show-value.ts';
import { HttpRefusal } from '../../play/transports/http-server.ts';
import { readFields, wrong } from './read-body.ts';
import { SESSION_KEY_START, type Asked, type Reply, type Route } from './route.ts';

/** A session ends with the decision on its attempt, but no later than this. */
const LONGEST_SESSION_MS = 90 * 24 * 3_600_000;

/** Paths with which clients of a session would ask the model. */
const MODEL_PATH = /^\/(?:v1\/)?(?:chat\/completions|completions|responses|messages)$/;

export const SESSION_ROUTES: readonly Route[] = [
  { method: 'POST', path: /^\/rl\/start_session$/, kind: 'json', access: 'key', answer: startSession },
  { method: 'POST', path: /^\/rl\/set_reward$/, kind: 'json', access: 'session', answer: setReward },
  { method: 'POST', path: /^\/rl\/end_session$/, kind: 'json', access: 'session', answer: endSession },
  { method: 'POST', path: MODEL_PATH, kind: 'json', access: 'session', answer: refuseCall },
];

async function startSession({ body, desk, keys }: Asked): Promise<Reply> {
  const fields = readFields(body, ['task_id', 'api_key']);
  const { task_id: task, api_key: earlier = null } = fields;
  const [, run, attempt] = typeof task === 'string' ? (/^([^/]+)\/([^/]+)$/.exec(task) ?? []) : [];
  if (run === undefined || attempt === undefined)
    throw wrong(`task_id must be RUN/ATTEMPT, such as demo/0.3.2.5, got ${showValue(task)}; see temper rewards`);
  const { refusal } = await desk.readAttempt(run, attempt);
  if (refusal !== null) throw new HttpRefusal(409, refusal, 'decided');
  const token = keys.sign({ kind: 'session', run, attempt, expiresAt: Date.now() + LONGEST_SESSION_MS });
  if (earlier !== null) checkEarlierKey(earlier, { keys, run, attempt });
  return { status: 200, json: { session_id: task, api_key: earlier ?? `${SESSION_KEY_START}${token}` } };
}

/** AReaL moves a key from one session to the next; here a key names its attempt. */
function checkEarlierKey(key: unknown, { keys, run, attempt }: Pick<Asked, 'keys'> & { run: string; attempt: string }) {
  const scope = typeof key === 'string' ? keys.read(key.replace(SESSION_KEY_START, ''), 'session') : null;
  if (scope !== null && scope.run === run && scope.attempt === attempt) return;
  throw new HttpRefusal(
    409,
    'api_key must be null or the key of this session, got another one; leave it out, each attempt has a key of its own',
    'key_bound',
  );
}

async function setReward({ body, scope, desk }: Asked): Promise<Reply> {
  const fields = readFields(body, ['reward', 'interaction_id']);
  if ((fields['interaction_id'] ?? null) !== null)
    throw wrong(
      'interaction_id must be null (the reward is that of the whole attempt), got the id of a call; leave it out',
    );
  await desk.give(scope?.run ?? '', { attempt: scope?.attempt ?? '', reward: fields['reward'] as number });
  return { status: 200, json: { message: 'success' } };
}

/** Nothing is held for a session: a client that never ends it costs nothing. */
async function endSession({ scope, desk }: Asked): Promise<Reply> {
  const { record } = await desk.readAttempt(scope?.run ?? '', scope?.attempt ?? '');
  return { status: 200, json: { message: 'success', interaction_count: record.calls.length } };
}

function refuseCall({ scope }: Asked): Promise<Reply> {
  const rule = `the attempt ${scope?.attempt} of ${scope?.run} has been played: its session takes a reward, and no calls`;
  return Promise.reject(new HttpRefusal(409, `${rule}; ask a model that temper serve serves`, 'played'));
}
