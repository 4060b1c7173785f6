/** Reviewers of a run: the pages behind their link, and comparisons as JSON, with a real server and store. */
import { expect, test } from 'vitest';

import { readAwaited } from '../../../views/attempts/awaited.ts';
import { planLinks } from '../../../operations/review/links.ts';
import type { ExternalConfig } from '../../../core/contract/contract.ts';
import { closeLedger, readGiven } from '../../../store/records/rewards/given-rewards.ts';
import { KEY, serveReview, type Served } from './served.ts';

const GROUP = { run: 'demo', branch: 0, step: 1, group: 0 };
const review = (more: object = {}): ExternalConfig => ({
  review: {
    pairwise: true,
    comparisonsPerAttempt: 2,
    reviewers: 1,
    question: 'Which reply would you <b>rather</b> get?',
    weights: { review: 1, agent: 0 },
    ...more,
  },
});

/** Hidden fields of the page's form, by name. */
function formOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name!, value!]),
  );
}

class Reviewer {
  readonly #served: Served;
  readonly #link: string;
  readonly #name: string;

  constructor(served: Served, name: string, run = 'demo') {
    this.#served = served;
    this.#name = name;
    this.#link = `/review/${served.keys.sign({ kind: 'run', run, attempt: null, expiresAt: Date.now() + 60_000 })}`;
  }

  /** The page as it is now. */
  async look(): Promise<string> {
    const { status, text } = await this.#served.open(`${this.#link}?by=${this.#name}`);
    expect(status).toBe(200);
    return text;
  }

  /** Answers the question that the page asks; returns its fields. */
  async answer(answer: string): Promise<Record<string, string>> {
    const fields = formOf(await this.look());
    expect(fields).toHaveProperty('left');
    const { status, headers } = await this.send({ ...fields, answer });
    expect({ status, location: headers.location }).toEqual({ status: 303, location: `?by=${this.#name}` });
    return fields;
  }

  send(form: Record<string, string>) {
    return this.#served.open(this.#link, form);
  }
}

const pairOf = ({ left = '', right = '' }: Record<string, string>) =>
  left < right ? `${left} ${right}` : `${right} ${left}`;

test('two reviewers at once answer different pairs until none is left, and the run is woken when a group is complete', async () => {
  const served = await serveReview({ external: review() });
  const [ada, bob] = [new Reviewer(served, 'ada'), new Reviewer(served, 'bob')];
  const first = await ada.look();
  expect(first).toContain('Which reply would you &lt;b&gt;rather&lt;/b&gt; get?');
  expect(first).toContain('0 of 6 answers');
  expect(formOf(first)).not.toEqual(formOf(await bob.look()));
  const asked = [];
  for (const reviewer of [ada, bob, ada, bob, ada, bob]) asked.push(pairOf(await reviewer.answer('left')));
  // Three attempts of each group are data: three pairs connect them.
  expect(new Set(asked).size).toBe(6);
  expect(await ada.look()).toContain('6 of 6 answers are given');
  expect(served.woken).toEqual(['demo', 'demo']);
  const rows = await readGiven(served.store, GROUP);
  expect(rows.map((row) => row.kind)).toEqual(['comparison', 'comparison', 'comparison']);
  expect(new Set(rows.map((row) => ('by' in row ? row.by : null)))).toEqual(new Set(['ada', 'bob']));
});

test('with two reviewers nobody is asked the same pair twice, and skipped pairs come back on demand', async () => {
  const served = await serveReview({ external: review({ reviewers: 2 }) });
  const ada = new Reviewer(served, 'ada');
  const skipped = pairOf(await ada.answer('skip'));
  const asked = [];
  for (let question = 0; question < 5; question++) asked.push(pairOf(await ada.answer('equal')));
  expect(new Set([...asked, skipped]).size).toBe(6);
  const end = await ada.look();
  expect(end).toContain('You skipped 1 question');
  expect(end).toContain('5 of 12 answers are given');
  await ada.send({ by: 'ada', answer: 'again' });
  expect(pairOf(await ada.answer('right'))).toBe(skipped);
  expect(await ada.look()).toContain('Nothing left for you');
  expect(served.woken).toEqual([]);
  for (let question = 0; question < 6; question++) await new Reviewer(served, 'bob').answer('left');
  expect(served.woken).toEqual(['demo', 'demo']);
});

test('what is said in attempts is text, and the page runs no script but its own', async () => {
  const hostile = '<script>alert(1)</script><img src=x onerror=alert(2)>';
  const served = await serveReview({ external: review(), messages: [{ role: 'user', content: hostile }] });
  const token = served.keys.sign({ kind: 'run', run: 'demo', attempt: null, expiresAt: Date.now() + 60_000 });
  const { headers, text } = await served.open(`/review/${token}?by=${encodeURIComponent('<b>ada</b>')}`);
  expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(text).not.toContain('<img');
  expect(text).toContain('&lt;b&gt;ada&lt;/b&gt;');
  // Messages that both begin with stand once.
  expect(text.split('&lt;script&gt;').length - 1).toBe(1);
  expect(headers['content-security-policy']).toMatch(/default-src 'none'; .*script-src 'sha256-[\w+/=]+'$/);
  expect((await served.open(`/review/${token}`)).text).toContain('Your name');
});

test('answers that may not be given are refused in one line, and nothing changes', async () => {
  const served = await serveReview({ external: review() });
  const ada = new Reviewer(served, 'ada');
  const fields = formOf(await ada.look());
  const before = await served.files();
  const compare = (body: object) => served.ask('POST', '/v1/runs/demo/comparisons', JSON.stringify(body));
  const messageOf = ({ status, text }: { status: number; text: string }) =>
    [status, (JSON.parse(text) as { error: { message: string } }).error.message] as const;
  const good = { left: fields['left']!, right: fields['right']!, answer: 'left' };
  for (const [body, status, message] of [
    [{ ...good, answer: 'both' }, 422, /^answer must be "left", "right" or "equal", got "both"; send one of them$/],
    [
      { ...good, left: '0.1.0' },
      404,
      /^an attempt must be named BRANCH.STEP.GROUP.ATTEMPT, such as 0.3.2.5, got "0.1.0"/,
    ],
    [{ ...good, left: '0.1.1.0', right: '0.1.0.1' }, 404, /must be two attempts of the run demo that are compared/],
    [{ ...good, right: '0.1.0.3' }, 404, /that are compared with each other, but are not; use a pair that/],
    [{ ...good, by: 'x'.repeat(300) }, 422, /^by must be a text of 1 to 200 characters/],
  ] as const) {
    const [got, said] = messageOf(await compare(body));
    expect({ got, said }).toEqual({ got: status, said: expect.stringMatching(message) as string });
    expect(said).not.toContain('\n');
  }
  expect((await ada.send({ ...good })).status).toBe(422);
  expect((await ada.send({ ...good, by: 'ada', answer: 'both' })).status).toBe(422);
  expect((await served.give('0.1.0.0', { reward: 1 })).text).toContain('is reviewed by pairs, which takes comparisons');
  expect((await served.ask('POST', '/v1/runs/demo/comparisons', JSON.stringify(good), {})).status).toBe(401);
  expect((await served.open('/review/forged.token')).status).toBe(404);
  expect((await served.open(served.linkTo('0.1.0.0').replace('/r/', '/review/'))).status).toBe(404);
  expect(await served.files()).toEqual(before);
  await closeLedger(served.store, GROUP, 'timeout');
  const late = await ada.send({ ...good, by: 'ada' });
  expect(late.status).toBe(409);
  expect(late.text).toMatch(
    /an answer must be given before its step is decided, and step 1 of the run demo is decided/,
  );
  expect(late.text).toContain('<a href="?by=ada">Next question</a>');
});

test('programs list open pairs with their conversations, and answer them from either side', async () => {
  const served = await serveReview({ external: review({ reviewers: 2 }) });
  const list = async (by: string) =>
    JSON.parse((await served.ask('GET', `/v1/runs/demo/comparisons?by=${by}`)).text) as {
      open: number;
      question: string;
      pairs: { scenario: string; left: { attempt: string; messages: object[] }; right: { attempt: string } }[];
    };
  const { open, question, pairs } = await list('bot');
  expect({ open, question }).toEqual({ open: 6, question: 'Which reply would you <b>rather</b> get?' });
  const { left, right, scenario } = pairs[0]!;
  expect(scenario).toBe('s0');
  expect(left.messages).toHaveLength(2);
  const answer = { left: right.attempt, right: left.attempt, answer: 'left', by: 'bot', idempotencyKey: 'k1' };
  const give = async (body: object) =>
    (await served.ask('POST', '/v1/runs/demo/comparisons', JSON.stringify(body))).text;
  expect(JSON.parse(await give(answer))).toMatchObject({ outcome: 'given' });
  expect(JSON.parse(await give(answer))).toMatchObject({ outcome: 'same' });
  expect(await give({ ...answer, answer: 'right' })).toContain('an idempotency key must belong to one answer');
  // Recorded from the planned sides.
  const [number] = [Number(left.attempt.split('.')[3])];
  expect(await readGiven(served.store, GROUP)).toMatchObject([
    { kind: 'comparison', left: number, answer: 'right', by: 'bot' },
  ]);
  expect((await list('bot')).open).toBe(5);
  expect((await list('other')).open).toBe(6);
});

test('attempts that get scores are asked one by one, and a score of a review is from 0 to 1', async () => {
  const served = await serveReview({ external: review({ pairwise: false }) });
  const ada = new Reviewer(served, 'ada');
  const page = await ada.look();
  expect(page).toContain('0 of 6 answers');
  expect(page).toContain('min="0" max="1"');
  const fields = formOf(page);
  expect((await ada.send({ ...fields, reward: 'score', score: '1.5' })).text).toContain(
    'the score of a review must be from 0 to 1, got 1.5',
  );
  expect((await ada.send({ ...fields, reward: 'score', score: '0.5', note: 'fair' })).status).toBe(303);
  const next = formOf(await ada.look());
  expect(next['attempt']).not.toBe(fields['attempt']);
  expect((await ada.send({ ...next, reward: '1' })).status).toBe(303);
  expect(await readGiven(served.store, GROUP)).toMatchObject([
    { attempt: 0, reward: 0.5, by: 'ada', note: 'fair' },
    { attempt: 1, reward: 1, by: 'ada' },
  ]);
  expect(await ada.look()).toContain('2 of 6 answers');
});

test('a run that is reviewed by pairs has one link, which opens its questions', async () => {
  const served = await serveReview({ external: review() });
  const list = (await readAwaited(served.store, 'demo'))!;
  const flags = { links: 'https://a.example', expiresDays: null };
  const { link, awaited } = await planLinks(flags, { TEMPER_REVIEW_KEY: KEY })!.addTo(list, served.store);
  expect(awaited.map((one) => one.link)).toEqual(Array.from({ length: 6 }));
  expect(link).toMatch(/^https:\/\/a\.example\/review\//);
  expect((await served.open(new URL(link!).pathname)).text).toContain('<h1>Review demo</h1>');
});
