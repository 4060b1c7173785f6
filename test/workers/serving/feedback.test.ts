/** `POST /v1/feedback` of `temper serve --record`, and how long what it rates is kept. */
import { describe, expect, test, vi } from 'vitest';
import { keepFor } from '../../../cli/serve/start-recording.ts';
import { closeFeedback, readRatedConversations } from '../../../store/records/production/feedback.ts';
import { removeRecordings } from '../../../store/records/production/recordings.ts';
import { askAt } from './asking.ts';
import { ALL, FEEDBACK_KEY, KEY, recordingServer, user } from './recording-server.ts';

const SECRET = 'Ada Lovelace, card 4242-4242';
const at = recordingServer();

describe('feedback', () => {
  test('opens with its own key alone, and that key opens nothing else', async () => {
    await at().serve(ALL);
    const { id } = await at().chat([user('a')]);
    for (const key of [KEY, '', 'wrong'])
      expect(await at().rate({ id, reward: 1 }, key)).toMatchObject({
        status: 401,
        error: { code: 'invalid_api_key' },
      });
    const other = { authorization: `Bearer ${FEEDBACK_KEY}` };
    const body = JSON.stringify({ model: 'demo', messages: [user('a')] });
    for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/messages'])
      expect(await askAt(at().port, path, other, body)).toMatchObject({ status: 401 });
    expect(await askAt(at().port, '/v1/models', other)).toMatchObject({ status: 401 });
    expect(await askAt(at().port, '/v1/feedback', other)).toMatchObject({ status: 405 });
    await at().serve({ ...ALL, feedbackKey: null });
    expect(await at().rate({ id, reward: 1 }, KEY)).toMatchObject({ status: 403 });
    expect(await at().rate({ id, reward: 1 }, '')).toMatchObject({ status: 403 });
  });

  test('on an answer or a conversation: the last one counts, also after a restart, until it is trained', async () => {
    await at().serve(ALL);
    const { id } = await at().chat([user('a')]);
    const conversation = (await at().recorded())[0]!.conversation;
    expect(JSON.parse((await at().rate({ id, label: 'thumbs_down', comment: 'wrong' })).body)).toMatchObject({
      object: 'feedback',
      id,
      conversation,
      reward: 0,
      label: 'thumbs_down',
      repeated: false,
    });
    await at().serve(ALL);
    expect(JSON.parse((await at().rate({ id, label: 'thumbs_up' })).body)).toMatchObject({ reward: 1 });
    expect(JSON.parse((await at().rate({ id, label: 'thumbs_up' })).body)).toMatchObject({ repeated: true });
    await at().rate({ id: conversation, reward: -0.5 });
    const [rated] = await readRatedConversations(at().store, 'demo');
    expect(rated).toMatchObject({ feedback: { reward: -0.5 }, turns: [{ feedback: { reward: 1 } }] });
    expect(rated!.rows.map(({ reward, comment }) => [reward, comment])).toEqual([
      [0, 'wrong'],
      [1, null],
      [-0.5, null],
    ]);
    await closeFeedback(at().store, 'demo', conversation, 'nightly-3');
    const late = await at().rate({ id, reward: 0 });
    expect(late).toMatchObject({
      status: 409,
      error: {
        code: 'already_trained',
        message: `the conversation of "${id}" was trained by the run nightly-3, so its feedback is closed; rate a later one`,
      },
    });
  });

  test.each([
    ['an unknown answer', { id: `chatcmpl-${'0'.repeat(32)}`, reward: 1 }, 404],
    ['an answer that was not recorded', { id: `chatcmpl-${'0'.repeat(24)}`, reward: 1 }, 404],
    ['an unknown conversation', { id: `conv_${'0'.repeat(32)}`, reward: 1 }, 404],
    ["a client's own name without the model's key", { id: 'ticket 7', reward: 1 }, 404],
    ['a path', { id: '../../../etc/passwd', reward: 1 }, 404],
    ['no number', { id: 'KNOWN', reward: '1' }, 422],
    ['a number out of range', { id: 'KNOWN', reward: -1.5 }, 422],
    ['neither', { id: 'KNOWN' }, 422],
    ['both', { id: 'KNOWN', reward: 1, label: 'thumbs_up' }, 422],
    ['an unknown label', { id: 'KNOWN', label: 'great' }, 422],
    ['an unknown member', { id: 'KNOWN', reward: 1, by: 'me' }, 422],
    ['a long comment', { id: 'KNOWN', reward: 1, comment: 'x'.repeat(10_001) }, 422],
  ])('%s is refused, and nothing changes', async (_name, body, expected) => {
    await at().serve(ALL);
    const { id } = await at().chat([user('a')]);
    await at().chat([user('b')], { metadata: { conversation_id: 'ticket 7' } });
    const before = at().onDisk();
    const { status, error } = await at().rate({ ...body, id: body.id === 'KNOWN' ? id : body.id });
    expect([status, typeof error.message]).toEqual([expected, 'string']);
    expect(at().onDisk()).toBe(before);
  });

  test('a number that is not finite, and a body that is no JSON', async () => {
    await at().serve(ALL);
    const { id } = await at().chat([user('a')]);
    const headers = { authorization: `Bearer ${FEEDBACK_KEY}` };
    for (const text of [`{"id": "${id}", "reward": 1e999}`, '{', '[]'])
      expect(await askAt(at().port, '/v1/feedback', headers, text)).toMatchObject({ status: 422 });
  });
});

test('a mark that a conversation was trained stays as long as its recordings do, and a name as its last one', async () => {
  await at().serve(ALL);
  await at().chat([user('a')], { metadata: { conversation_id: 'ticket 7' } });
  await closeFeedback(at().store, 'demo', 'ticket 7', 'nightly-1');
  await removeRecordings(at().store, 'demo', Date.now() + 1_800_000);
  expect(await at().recorded()).toHaveLength(1);
  expect(await at().rate({ id: 'ticket 7', reward: 1 }, FEEDBACK_KEY, KEY)).toMatchObject({ status: 409 });
});

test('retention begins after an hour, and not at a clock that has jumped', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] });
  const listing = vi.spyOn(at().store, 'list');
  const warnings: string[] = [];
  const stop = keepFor(7, at().store, 'demo', (line) => warnings.push(line));
  vi.setSystemTime(Date.now() + 365 * 86_400_000);
  vi.advanceTimersByTime(3_600_000);
  expect(listing).not.toHaveBeenCalled();
  vi.advanceTimersByTime(3_600_000);
  expect(listing).toHaveBeenCalled();
  stop();
  vi.useRealTimers();
  expect(warnings).toEqual([]);
});

test('retention removes old recordings with their feedback and names, and no others', async () => {
  await at().serve(ALL);
  const { id } = await at().chat([user(SECRET)], { metadata: { conversation_id: SECRET } });
  await at().rate({ id, reward: 1, comment: SECRET });
  await removeRecordings(at().store, 'demo', Date.now() - 1000);
  expect(await at().recorded()).toHaveLength(1);
  await removeRecordings(at().store, 'demo', Date.now() + 2 * 3_600_000);
  expect(await at().recorded()).toEqual([]);
  expect(at().onDisk()).not.toContain('Lovelace');
  await at().serve(ALL);
  expect(await at().rate({ id, reward: 1 })).toMatchObject({ status: 404 });
});
