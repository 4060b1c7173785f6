import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';

import { TemperError } from '../../core/contract/failures.ts';
import { Journal } from '../../play/recorder/journal.ts';
import { encodeRecord } from '../../store/bytes/journal-records.ts';
import { markOf, memoryJournal, playAttempts, playOne, say, type TestRollout } from './play.ts';
import { sharedEngine } from './shared-engine.ts';

const engine = await sharedEngine();

const KEY = 'k'.repeat(64);

function record(answer: unknown, key = KEY): Uint8Array {
  return encodeRecord(JSON.stringify({ a: 0, k: key, o: 0, r: answer }));
}

function journalOf(...segments: Uint8Array[]): Journal {
  return new Journal(memoryJournal(segments).open());
}

test('of two records for a call the lowest segment wins', () => {
  const journal = journalOf(record('first'), Buffer.concat([record('second'), record('third')]));
  expect(journal.claim(0, KEY, 0)).toBe('first');
  expect(journal.claim(1, KEY, 0)).toBeNull();
  expect(journal.claim(0, KEY, 1)).toBeNull();
});

test('a torn tail is ignored, wherever it is torn', () => {
  const whole = record('whole');
  const torn = record('torn', 'other');
  for (let length = 0; length < torn.length; length++) {
    const journal = journalOf(Buffer.concat([whole, torn.subarray(0, length)]));
    expect(journal.claim(0, KEY, 0)).toBe('whole');
    expect(journal.claim(0, 'other', 0)).toBeNull();
  }
});

test('a record with a wrong checksum ends its segment, and the next segment is read', () => {
  const broken = Buffer.from(record('broken'));
  broken[broken.length - 3] = 0;
  const journal = journalOf(Buffer.concat([broken, record('behind', 'other')]), record('next'));
  expect(journal.claim(0, KEY, 0)).toBe('next');
  expect(journal.claim(0, 'other', 0)).toBeNull();
});

test('of the turns at which calls overlapped the earliest counts', () => {
  const overlap = (turn: number) => encodeRecord(JSON.stringify({ a: 0, t: turn }));
  const journal = journalOf(Buffer.concat([overlap(4), overlap(2)]), overlap(3));
  expect([journal.overlap(0), journal.overlap(1)]).toEqual([2, null]);
});

const turns: TestRollout = async (context) => {
  let sum = 0;
  for (let turn = 0; turn < 4; turn++) sum += Number(await say(context, `turn ${turn} of ${sum}`));
  return sum;
};

test('a repetition in the middle of an attempt executes nothing twice and ends with the same bytes', async () => {
  const undisturbed = await playAttempts(engine, turns, { attempts: 6 });
  engine.executed.length = 0;
  const journal = memoryJournal();
  for (const budget of [5, 11, 17, Infinity]) {
    engine.failWhen(() => (engine.executed.length >= budget ? { status: 503 } : null));
    const rollout = { callRetryBudgetMs: 500 };
    const playing = playAttempts(engine, turns, { attempts: 6, journal, rollout });
    if (budget < Infinity) await markOf(playing);
    else expect(JSON.stringify(await playing)).toBe(JSON.stringify(undisturbed));
  }
  const calls = engine.executed.map(({ call }) => call);
  expect(calls).toHaveLength(24);
  expect(new Set(calls).size).toBe(24);
});

test('parallel calls find their answers, whatever order they are asked in again', async () => {
  const parallel =
    (order: number[]): TestRollout =>
    async (context) => {
      await Promise.all(order.map((index) => say(context, `question ${index}`)));
      await say(context, 'same').then(() => say(context, 'same'));
      return 1;
    };
  const journal = memoryJournal();
  const first = await playOne(engine, parallel([0, 1, 2, 3]), { journal });
  const again = await playOne(engine, parallel([3, 1, 0, 2]), { journal });
  expect(engine.executed).toHaveLength(6);
  expect(JSON.stringify(again)).toBe(JSON.stringify(first));
});

test('an agent that asks something else when it is repeated is counted', async () => {
  const journal = memoryJournal();
  await playOne(engine, (context) => say(context, 'monday').then(Number), { journal });
  const again = await playOne(engine, (context) => say(context, 'tuesday').then(Number), { journal });
  expect(again).toMatchObject({ status: 'ok', unclaimedAnswers: 1 });
});

test('once runs a side effect once, for each attempt, however often it is asked for and repeated', async () => {
  const journal = memoryJournal();
  const done: string[] = [];
  const buying: TestRollout = async ({ once, scenario }) => {
    const buy = () => {
      done.push(scenario.id);
      return { receipt: done.length, nothing: undefined };
    };
    const [first, second] = await Promise.all([once('buy', buy), once('buy', buy)]);
    expect(first).toEqual({ receipt: first.receipt });
    expect(second).toEqual(first);
    return first.receipt;
  };
  const first = await playAttempts(engine, buying, { attempts: 3, journal });
  const again = await playAttempts(engine, buying, { attempts: 3, journal });
  expect(done).toHaveLength(3);
  expect(again).toEqual(first);
});

test('a side effect under way when the engine is lost is waited for, recorded, and not repeated', async () => {
  const journal = memoryJournal();
  let done = 0;
  const rollout: TestRollout = async (context) => {
    const buying = context.once('buy', async () => {
      await sleep(300);
      return ++done;
    });
    await say(context, 'x').catch(() => null);
    return buying;
  };
  engine.failWhen(() => ({ status: 404 }));
  await markOf(playOne(engine, rollout, { journal }));
  engine.failWhen(() => null);
  expect((await playOne(engine, rollout, { journal })).reward).toBe(1);
  expect(done).toBe(1);
});

test('once that failed may be tried again', async () => {
  let tries = 0;
  const attempt = await playOne(engine, async ({ once }) => {
    const flaky = async (): Promise<number> => {
      await sleep(1);
      if (++tries === 1) throw new Error('not yet');
      return tries;
    };
    await expect(once('flaky', flaky)).rejects.toThrow('not yet');
    return once('flaky', flaky);
  });
  expect(attempt.reward).toBe(2);
});

test('an answer that could not be journaled is not handed on', async () => {
  const seen: string[] = [];
  const segments = {
    existing: [],
    append: () => {
      throw new TemperError('StoreUnavailable', 'the disk is full');
    },
    close: () => undefined,
  };
  const asking: TestRollout = (context) =>
    say(context, 'x')
      .then((text) => seen.push(text))
      .catch(() => 0);
  const mark = await markOf(playOne(engine, asking, { segments }));
  expect(mark).toMatchObject({ type: 'StoreUnavailable', retryable: true });
  expect(seen).toEqual([]);
});
