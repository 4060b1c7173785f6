/** Signed links: the page, its form, and that a link opens one reward once. */
import { describe, expect, test } from 'vitest';
import { closeLedger, readGiven } from '../../../store/records/rewards/given-rewards.ts';
import { serveReview, type Served } from './served.ts';

const GROUP = { run: 'demo', branch: 0, step: 1, group: 0 };

/** Text of a page, without its markup. */
const wordsOf = (html: string): string =>
  html
    .replaceAll(/<(style|title)>.*?<\/\1>/gs, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

test('a person reads the conversation, and approves or rejects once', async () => {
  const served = await serveReview();
  const link = served.linkTo('0.1.0.1');
  const files = await served.files();
  const page = await served.open(link);
  expect(page.status).toBe(200);
  expect(wordsOf(page.text)).toContain('User Where is my order? Assistant answer 1');
  for (const word of ['Approve', 'Reject', 'Give the score']) expect(page.text).toContain(word);
  expect((await served.ask('HEAD', link, null, {})).status).toBe(200);
  expect(await served.files()).toEqual(files);

  const given = await served.open(link, { reward: '1', by: ' Ann ', note: 'kind\r\nand right', score: '' });
  expect([given.status, wordsOf(given.text)]).toEqual([
    200,
    'Thank you The reward was given. You can close this page.',
  ]);
  const [row] = await readGiven(served.store, GROUP);
  expect(row).toMatchObject({ attempt: 1, reward: 1, by: 'Ann', note: 'kind\nand right' });
  expect(JSON.stringify(row)).not.toContain(link.slice(3));

  const after = await served.files();
  expect(wordsOf((await served.open(link, { reward: '1', by: 'Bob' })).text)).toBe(
    'Thank you This reward had been given before.',
  );
  const replayed = await served.open(link, { reward: '0' });
  expect([replayed.status, wordsOf(replayed.text)]).toEqual([
    409,
    'Not accepted this link has given another reward, and gives no second one; ask for a new link',
  ]);
  expect(wordsOf((await served.open(link)).text)).toContain('The reward is 1.000, given by Ann on');
  expect(await served.files()).toEqual(after);
});

test('a score is a number within the range of rewards', async () => {
  const served = await serveReview();
  await served.open(served.linkTo('0.1.0.0'), { reward: 'score', score: '-0.25' });
  expect(await readGiven(served.store, GROUP)).toMatchObject([{ attempt: 0, reward: -0.25, by: null, note: null }]);
  const refuse = async (form: Record<string, string>) => {
    const { status, text } = await served.open(served.linkTo('0.1.0.1'), form);
    return `${status} ${wordsOf(text)}`;
  };
  expect(await refuse({ reward: 'score', score: ' ' })).toContain('422 Not accepted a decision must be approve');
  expect(await refuse({ reward: 'score', score: '1e200' })).toContain('from -1000000 to 1000000, got 1e+200');
  expect(await refuse({ reward: 'score', score: '1e999' })).toContain('422 Not accepted the reward must be a finite');
  expect(await refuse({ reward: 'score', score: 'good' })).toContain('422 Not accepted the reward must be a finite');
  expect(await refuse({ reward: '2' })).toContain('422 Not accepted a decision must be approve, reject or a score');
  expect(await refuse({})).toContain('422 Not accepted a decision must be approve, reject or a score, got none');
  expect(await readGiven(served.store, GROUP)).toHaveLength(1);
});

test('the reward of somebody else is replaced knowingly, without being told what it is', async () => {
  const served = await serveReview();
  await served.give('0.1.0.1', { reward: 0.123, by: 'bob', note: 'a secret' });
  const { text } = await served.open(served.linkTo('0.1.0.1'));
  expect(text).toContain('This attempt has a reward already. Yours would replace it.');
  for (const word of ['0.123', 'bob', 'secret']) expect(text).not.toContain(word);
});

describe('a link that is not valid opens nothing', () => {
  const links: [string, (served: Served) => string][] = [
    ['expired', (served) => served.linkTo('0.1.0.1', { expiresAt: Date.now() - 1 })],
    ['changed', (served) => served.linkTo('0.1.0.1').replace(/.$/, (end) => (end === 'A' ? 'B' : 'A'))],
    ['that opens a whole run', (served) => served.linkTo('0.1.0.1', { kind: 'run' })],
    ['to an attempt that was not played', (served) => served.linkTo('0.1.7.1')],
    ['of another run', (served) => served.linkTo('0.1.0.1', { run: 'other' })],
    ['with the review key in it', () => '/r/a-review-key'],
  ];

  test.each(links)('%s', async (_, linkOf) => {
    const served = await serveReview();
    const files = await served.files();
    const link = linkOf(served);
    const answers = [await served.open(link), await served.open(link, { reward: '1' })];
    for (const { status, text, headers } of answers) {
      expect([404, 410]).toContain(status);
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(text).not.toContain('answer 1');
    }
    expect(await served.files()).toEqual(files);
  });
});

test('an expired link says since when; after the decision, a page takes nothing more', async () => {
  const served = await serveReview();
  const expired = await served.open(served.linkTo('0.1.0.1', { expiresAt: Date.parse('2026-01-02T03:04:05Z') }));
  expect(wordsOf(expired.text)).toBe('Not accepted this link expired on 2026-01-02; ask for a new one');
  await closeLedger(served.store, GROUP, 'timeout');
  const files = await served.files();
  const link = served.linkTo('0.1.0.1');
  const page = await served.open(link);
  expect(page.text).not.toContain('<form');
  const refused = await served.open(link, { reward: '1' });
  expect(refused.status).toBe(409);
  for (const { text } of [page, refused]) expect(wordsOf(text)).toContain('step 1 of the run demo is decided');
  expect(await served.files()).toEqual(files);
});

test('a page takes its own form alone', async () => {
  const served = await serveReview();
  const link = served.linkTo('0.1.0.1');
  const json = await served.ask('POST', link, '{"reward": 1}', { 'content-type': 'application/json' });
  expect([json.status, (await served.ask('DELETE', link, null, {})).status]).toEqual([415, 405]);
  expect(await readGiven(served.store, GROUP)).toEqual([]);
});

test('a hostile conversation is text: no script, no request, no change of direction outside of its block', async () => {
  const messages = [
    {
      role: 'user"><script>',
      content: '</pre><script>alert(1)</script><img src="https://evil.example/x.png">\u202eevil',
    },
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://evil.example/track.png' } }] },
    { role: 'assistant', content: null, tool_calls: [{ function: { name: '<b>', arguments: '{"a":"</pre><b>"}' } }] },
    { role: 'tool', content: { any: '<i>' } },
    { role: 'assistant', content: 'x'.repeat(1_000_000) },
  ];
  const served = await serveReview({ messages, scenarioId: '"><svg onload=alert(1)>' });
  const { text, headers, status } = await served.open(served.linkTo('0.1.0.1'));
  expect(status).toBe(200);
  expect(text).not.toMatch(/<(script|img|svg|b|i|iframe|link)[\s>]/);
  expect(text).not.toContain('\u202e');
  expect(text).toContain('\\u202eevil');
  expect(text).toContain('980,000 more characters');
  expect(headers['content-security-policy']).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
  );
  expect(headers).toMatchObject({
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-robots-tag': 'noindex',
  });
});
