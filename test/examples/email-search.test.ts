import { afterAll, describe, expect, test } from 'vitest';
import { parseAnswer } from '../../examples/email-search/office.ts';
import { grade, type Answer, type Edition } from '../../examples/email-search/grade.ts';
import type { Mail, Mailbox } from '../../examples/email-search/mail.ts';
import { MailIndex, openMailboxes } from '../../examples/email-search/mail-index.ts';
import { FIRST_EXAM_SEED, makeMailbox, QUESTIONS_EACH } from '../../examples/email-search/mailbox.ts';
import { Lookup, parseSmallAnswer } from '../../examples/email-search/lookup.ts';
import { isHeldOut, makeSmallMailbox } from '../../examples/email-search/small-mailbox.ts';

const open: MailIndex[] = [];
afterAll(() => {
  for (const index of open) index.close();
});

function indexOf(mailbox: Mailbox): MailIndex {
  const index = new MailIndex(mailbox);
  open.push(index);
  return index;
}

const ids = (hits: readonly { id: number }[]) => hits.map(({ id }) => id);
const range = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);

/** How each question is known by its words, and which mails tell of it: shares nothing with the generator but the language. */
const TELLING: readonly (readonly [question: RegExp, mails: RegExp, value: RegExp])[] = [
  [/^How many euros was (.+) given/, /euros/, /(?:gives \S+ \S+|Approved today:) ([\d,]+) euros/],
  [/^On which day is the launch of (.+)\?/, /launch/i, /(?:moves to|is now on) (\d+ \w+ 2024)/],
  [/^In which room is the workshop of (.+)\?/, /Room [A-H]\d/, /(?:takes place in|goes to) (Room \w+)/],
  [/^Which invoice for (.+) is to be paid/, /INV-/, /(?:Please pay invoice|Invoice) (INV-\d+) for/],
  [/^Who leads (.+)\?/, /\bleads\b/, /(\w+ \w+) leads/],
  [/^What is the extension of (?!whoever)(.+)\?/, /extension/, /extension (?:of \w+ \w+ is )?(\d{4})/],
];

/** Reads all mails, and believes the newest that tells of it. */
function lookUp(mails: readonly Mail[], question: string): { answer: string; source: number } {
  const [asked, about, value] = TELLING.find(([text]) => text.test(question))!;
  const it = asked.exec(question)![1]!;
  const telling = mails.filter(({ body }) => body.includes(it) && about.test(body) && !/Ignore|Assistants/.test(body));
  const newest = telling.toSorted((a, b) => (a.date < b.date ? 1 : -1)).find(({ body }) => !/cake/.test(body))!;
  return { answer: value.exec(newest.body)?.[1] ?? '', source: newest.id };
}

const DAY = new Intl.DateTimeFormat('en-CA', { timeZone: 'UTC', dateStyle: 'short' });

function inForm(told: string): string {
  return / \w+ 2024$/.test(told) ? DAY.format(new Date(`${told} UTC`)) : told.replace(',', '');
}

describe('a mailbox', () => {
  test('is the same for one seed, and another for others', () => {
    expect(makeMailbox(3)).toEqual(makeMailbox(3));
    expect(makeMailbox(3)).not.toEqual(makeMailbox(4));
    expect(makeSmallMailbox(3)).toEqual(makeSmallMailbox(3));
    expect(makeSmallMailbox(3)).not.toEqual(makeSmallMailbox(4));
  });

  test.each([0, 1, 2, FIRST_EXAM_SEED])('has one answer to each of its questions (seed %d)', (seed) => {
    const { mails, questions } = makeMailbox(seed);
    expect(questions).toHaveLength(QUESTIONS_EACH);
    expect(new Set(questions.map(({ text }) => text)).size).toBe(QUESTIONS_EACH);
    const direct = questions.filter(({ text }) => !text.includes('whoever'));
    for (const { text, answer, sources } of direct) {
      const found = lookUp(mails, text);
      expect({ text, answer: inForm(found.answer), sources: [found.source] }).toEqual({ text, answer, sources });
    }
  });

  test('answers a question of two steps by one after the other', () => {
    const { mails, questions } = makeMailbox(7);
    const twoSteps = questions.filter(({ text }) => text.includes('whoever leads'));
    expect(twoSteps).toHaveLength(5);
    for (const { text, answer, sources } of twoSteps) {
      const it = /whoever leads (.+)\?/.exec(text)![1]!;
      const lead = lookUp(mails, `Who leads ${it}?`);
      const extension = lookUp(mails, `What is the extension of ${lead.answer}?`);
      expect({ answer: extension.answer, sources: [lead.source, extension.source] }).toEqual({ answer, sources });
    }
  });

  test('tells of each fact twice, and otherwise the first time', () => {
    const { mails, questions } = makeMailbox(5);
    const budgets = questions.filter(({ text }) => text.startsWith('How many euros'));
    for (const { text, answer } of budgets) {
      const it = /was (.+) given/.exec(text)![1]!;
      const told = mails.filter(({ body }) => body.includes(it) && body.includes('euros'));
      expect(told).toHaveLength(2);
      expect(told[0]!.body.replace(',', '')).not.toContain(`${answer} euros`);
    }
  });

  test('has its mails in order, under ids of their own', () => {
    const { mails } = makeMailbox(2);
    expect(new Set(ids(mails)).size).toBe(mails.length);
    expect(new Set(mails.map(({ date }) => date)).size).toBe(mails.length);
    expect(mails.map(({ date }) => date)).toEqual(mails.map(({ date }) => date).toSorted());
    expect(JSON.stringify(mails)).not.toMatch(/[{](it|value|old|number|person)[}]|undefined|null/);
  });

  test('of the exam asks about projects and people that no training tells of', () => {
    const subjects = (seed: number) =>
      makeMailbox(seed).questions.map(({ text }) => /(?:was|of|for|leads) ((?:[A-Z]\w+ ?){2})/.exec(text)![1]!.trim());
    const trained = new Set(range(0, 50).flatMap(subjects));
    const exam = new Set(range(FIRST_EXAM_SEED, 3).flatMap(subjects));
    expect(trained.size).toBeGreaterThan(200);
    expect(exam.size).toBeGreaterThan(20);
    expect([...exam].filter((subject) => trained.has(subject))).toEqual([]);
  });
});

describe('a small mailbox', () => {
  test('has three mails about what is asked, and the newest tells the answer', () => {
    for (const seed of [...range(0, 100), ...range(FIRST_EXAM_SEED, 100)]) {
      const { mails, questions } = makeSmallMailbox(seed);
      const [{ text, answer, sources }] = questions as [Mailbox['questions'][number]];
      const word = /^What is ([BDFGKMNP][EOUY][CHJLRSVZ])\?$/.exec(text)![1]!;
      const about = mails.filter(({ body }) => body.includes(word));
      expect(about).toHaveLength(3);
      expect(about.at(-1)).toMatchObject({ id: sources[0], body: `${word} is ${answer}.` });
      expect(new Set(mails.flatMap(({ body }) => body.slice(0, -1).split(' is '))).size).toBe(3 + 9);
      expect(new Set(ids(mails))).toEqual(new Set(range(1, 9)));
      expect(isHeldOut(word)).toBe(seed >= FIRST_EXAM_SEED);
    }
  });

  test('is found out by one search: three ids, the newest first', () => {
    for (const seed of range(0, 5)) {
      const mailbox = makeSmallMailbox(seed);
      const [{ text, sources }] = mailbox.questions as [Mailbox['questions'][number]];
      const word = text.slice(8, 11);
      const expected = ids(mailbox.mails.filter(({ body }) => body.startsWith(word))).toReversed();
      const hits = ids(indexOf(mailbox).search({ query: word }));
      expect(hits).toEqual(expected);
      expect(hits[0]).toBe(sources[0]);
    }
  });

  test('asks about one in five words in the exam alone', () => {
    const words = ['EOUY', 'CHJLRSVZ'].reduce<string[]>(
      (begun, letters) => begun.flatMap((word) => letters.split('').map((letter) => word + letter)),
      'BDFGKMNP'.split(''),
    );
    const share = words.filter(isHeldOut).length / words.length;
    expect(share).toBeGreaterThan(0.15);
    expect(share).toBeLessThan(0.25);
  });
});

describe('the search', () => {
  const mail = (id: number, subject: string, body: string): Mail => ({
    id,
    date: `2024-03-${id} 09:00`,
    from: 'Ada Abel',
    to: 'Olga Novak',
    subject,
    body,
  });
  const mailbox: Mailbox = {
    questions: [],
    mails: [
      mail(10, 'Budget of Blue Heron', 'I ask for 5,000 euros.'),
      mail(11, 'Lunch', 'The "Blue Heron" is a café, is it NOT?'),
      mail(12, 'Über Blue Otter', "It's not; DROP TABLE mails; -- and a subject: heron"),
      mail(13, 'Nothing', 'x'.repeat(100)),
    ],
  };
  const index = indexOf(mailbox);

  test.each([
    ['heron', [12, 11, 10]],
    ['HERON blue', [12, 11, 10]],
    ['blue heron budget', [10]],
    ['cafe', [11]],
    ['uber', [12]],
    ['5,000', [10]],
    ['Abel lunch', [11]],
    ['hero', []],
    ['"blue heron"', [12, 11, 10]],
    ['heron OR lunch', []],
    ['heron NOT blue', [12, 11]],
    ['subject:heron', [12]],
    ['hero*', []],
    ['heron" OR "lunch', []],
    ["'; DROP TABLE mails; --", [12]],
    ['NEAR(blue heron)', []],
    ['^budget', [10]],
    ['euros -ask', [10]],
  ])('takes %j as words and no more', (query, found) => {
    expect(ids(index.search({ query }))).toEqual(found);
  });

  test('shows what a mail is about, the newest ten', () => {
    expect(index.search({ query: 'budget' })).toEqual([
      {
        id: 10,
        date: '2024-03-10 09:00',
        from: 'Ada Abel',
        subject: 'Budget of Blue Heron',
        snippet: 'I ask for 5,000 euros.',
      },
    ]);
    const many = { questions: [], mails: range(10, 15).map((id) => mail(id, 'Same', 'again')) };
    expect(ids(indexOf(many).search({ query: 'same' }))).toEqual(range(15, 10).toReversed());
  });

  test('keeps to days, both included', () => {
    expect(ids(index.search({ query: 'heron', after: '2024-03-11' }))).toEqual([12, 11]);
    expect(ids(index.search({ query: 'heron', before: '2024-03-11' }))).toEqual([11, 10]);
    expect(ids(index.search({ query: 'heron', after: '2024-03-11', before: '2024-03-11' }))).toEqual([11]);
  });

  test('refuses a query without words, and one of too many', () => {
    expect(() => index.search({ query: ' "*" ' })).toThrow('query must have a word');
    expect(() => index.search({ query: 'a '.repeat(21) })).toThrow('query must have at most 20 words, got 21');
  });

  test('reads a mail as it is', () => {
    expect(index.read(12)).toEqual(mailbox.mails[2]);
    for (const id of [9, 1.5, Number.NaN, 2 ** 60]) expect(() => index.read(id)).toThrow('no such id');
  });

  test.each([
    ['How many euros', 'euros'],
    ['On which day', 'launch'],
    ['In which room', 'workshop'],
    ['Which invoice', 'invoice'],
    ['Who leads', 'leads'],
    ['What is the extension', 'extension'],
  ])('finds the source of “%s …” by the name and the word %s', (begins, word) => {
    const full = makeMailbox(FIRST_EXAM_SEED);
    const searched = indexOf(full);
    const asked = full.questions.filter(({ text, sources }) => text.startsWith(begins) && sources.length === 1);
    expect(asked.length).toBeGreaterThanOrEqual(5);
    for (const { text, sources } of asked) {
      const name = /(?:was|of|for|leads) ((?:[A-Z]\w+ ?){2})/.exec(text)![1]!;
      expect(ids(searched.search({ query: `${name} ${word}` }))).toContain(sources[0]);
    }
  });

  test.each([0, 7, FIRST_EXAM_SEED])(
    'of seed %i says the same without SQLite, to agents with a loop of their own',
    (seed) => {
      const indexed = indexOf(makeSmallMailbox(seed));
      const [asked] = indexed.questions;
      const lookup = new Lookup({ id: 'one', seed });
      for (const word of ['is', 'XYZ', asked!.text.slice(8, 11), asked!.answer]) {
        const hits = indexed.search({ query: word });
        expect(lookup.search(word)).toBe(`[${ids(hits).join(', ')}]`);
        for (const { id } of hits) expect(lookup.read(id)).toBe(indexed.read(id).body);
      }
      expect(lookup.read(10)).toBe('Error: no such id');
      expect([lookup.hasRead(1), lookup.hasRead(10)]).toEqual([true, false]);
      const { reward, metrics } = lookup.grade(`${asked!.answer} ${asked!.sources[0]}`, 3);
      expect(reward).toBeCloseTo(1.34);
      expect(metrics).toMatchObject({ correct: true, sourced: true, found: true, read: true, turns: 3 });
      expect(lookup.grade(null, 5).metrics).toMatchObject({ correct: false, answered: false });
    },
  );

  test('keeps the mailboxes open that were used last', () => {
    const made: number[] = [];
    const mailboxOf = openMailboxes((seed) => (made.push(seed), makeSmallMailbox(seed)), 2);
    const [first, second] = [mailboxOf(1), mailboxOf(2)];
    expect(mailboxOf(1)).toBe(first);
    open.push(mailboxOf(3));
    expect(mailboxOf(1)).toBe(first);
    expect(() => second.read(10)).toThrow('already closed');
    expect(made).toEqual([1, 2, 3]);
    first.close();
  });
});

const FULL: Edition = { maxTurns: 10, maxTokensPerTurn: 100, wrong: -1 };
const QUESTION = { text: 'How much?', answer: '41500', sources: [7, 8] };
const trail = (found: number[], read: number[]) => ({ found: new Set(found), read: new Set(read) });

describe('the reward', () => {
  test.each<[string, Answer | null, number[], number[], number]>([
    ['the right answer with its sources', { text: '41500', sources: [8, 7] }, [7, 8, 9], [7, 8], 1.35],
    ['the right answer with half of them', { text: '41,500 euros', sources: [7] }, [], [], 1.2],
    ['one source too many', { text: '€ 41500.', sources: [7, 8, 9] }, [], [], 1.25],
    ['a source cited twice', { text: '41500', sources: [7, 7, 8] }, [], [], 1.35],
    ['the right answer without sources', { text: '41500 EUR', sources: [] }, [], [], 1.05],
    ['a wrong answer', { text: '4150', sources: [7, 8] }, [], [], -1],
    ['a wrong answer after the right mails', { text: '38000', sources: [] }, [7, 8], [7, 8], -0.8],
    ['no answer', null, [7], [], 0],
    ['no answer after the right mails', null, [7, 8], [8, 7], 0.2],
  ])('of %s', (_, answer, found, read, reward) => {
    const graded = grade({ answer, trail: trail(found, read), turns: 5 }, QUESTION, FULL);
    expect(graded.reward).toBeCloseTo(reward);
    expect(graded.metrics).toMatchObject({ correct: reward > 1, answered: answer !== null, turns: 5 });
  });

  test('takes a whole answer alone', () => {
    const worth = (text: string) =>
      grade({ answer: { text, sources: [] }, trail: trail([], []), turns: 10 }, QUESTION, FULL).reward;
    expect(['41500 or 38000', '141500', '41500.00', '4 1500', '', '4,1500'].map(worth)).toEqual([
      -1, -1, -1, -1, -1, -1,
    ]);
  });
});

describe('an answer', () => {
  test.each<[string, Answer | null]>([
    ['Answer: Room A123\nSources: 1234, 5678', { text: 'Room A123', sources: [1234, 5678] }],
    ['I looked.\n\nanswer: 41,500 \n source: 1234 \n\n', { text: '41,500', sources: [1234] }],
    ['Answer: 1\nSources: none', { text: '1', sources: [] }],
    ['Answer: 1\nSources: 1\nNo, wait.', null],
    ["Answer: I don't know\nSources:", null],
    ['Answer: I don’t know.\nSources: 12', null],
    ['Answer:\nSources: 12', null],
    ['Room A123', null],
    ['', null],
  ])('is read off the last two lines of %j', (text, answer) => {
    expect(parseAnswer(text)).toEqual(answer);
  });

  test.each<[string, Answer | null]>([
    ['KEL 4', { text: 'KEL', sources: [4] }],
    ['KEL', { text: 'KEL', sources: [] }],
    ['KEL 4 5', null],
    ['KEL is BOR.', null],
    [' KEL', null],
    ['kel 4', null],
    ['', null],
  ])('in the small edition is a word and an id: %j', (text, answer) => {
    expect(parseSmallAnswer(text)).toEqual(answer);
  });
});
