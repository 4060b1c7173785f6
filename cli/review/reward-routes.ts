/** Rewards as JSON, for programs that have the review key. */
import type { GivenReward } from '../../store/records/give-reward.ts';
import { readAwaited } from './awaited-list.ts';
import { readFields, readIdempotencyKey, readText } from './read-body.ts';
import type { Asked, Reply, Route } from './route.ts';

const MEMBERS = ['reward', 'metrics', 'by', 'note', 'idempotencyKey'];

const LIST = /^\/v1\/runs\/([^/]+)\/rewards$/;
const GIVE = /^\/v1\/runs\/([^/]+)\/attempts\/([^/]+)\/reward$/;

export const REWARD_ROUTES: readonly Route[] = [
  { method: 'GET', path: LIST, kind: 'json', access: 'key', answer: answerList },
  { method: 'POST', path: GIVE, kind: 'json', access: 'key', answer: giveReward },
];

async function answerList({ parts: [run = ''], desk }: Asked): Promise<Reply> {
  await desk.requireRun(run);
  return { status: 200, json: (await readAwaited(desk.store, run)) ?? { run, awaited: [], completeGroups: 0 } };
}

async function giveReward(asked: Asked): Promise<Reply> {
  const [run = '', attempt = ''] = asked.parts;
  const fields = readFields(asked.body, MEMBERS);
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
