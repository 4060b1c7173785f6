import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';

import { createContact } from '../../activities/contact.ts';
import { startPauseDetector } from '../../activities/pause-detector.ts';
import { say } from '../play/play.ts';
import { call, failureOf, openWorld, rolloutInput } from './world.ts';

test('a clock that was ahead and is put right has seen no standstill that still counts', () => {
  let now = 10_000_000;
  const pauses = startPauseDetector(() => now);
  const longest = (jumpMs: number) => {
    now += jumpMs;
    pauses.check();
    return pauses.longestPauseMs(now - 1000);
  };
  expect(longest(500)).toBe(0);
  expect(longest(3_600_000)).toBe(3_600_000);
  expect(longest(-3_600_000)).toBe(0);
  expect(longest(500)).toBe(0);
  expect(longest(30_000)).toBe(30_000);
  expect(longest(500)).toBe(30_000);
  expect([longest(500), longest(500)]).toEqual([0, 0]);
});

test('a process that has just stood still starts no old task, and an old task of a live process is no matter', async () => {
  let now = 1_000_000;
  const clock = (): number => now;
  const pauses = startPauseDetector(clock);
  const frozen = await openWorld({}, { pauses, clock });
  const input = await rolloutInput(frozen.store);
  const handedOut = { currentAttemptScheduledTimestampMs: now };
  now += 30_000;
  expect(await failureOf(call(frozen.activities.rollout, input, handedOut))).toMatchObject({
    type: 'StaleAttempt',
    nonRetryable: false,
  });
  pauses.check();
  expect(await failureOf(call(frozen.activities.rollout, input, handedOut))).toMatchObject({ type: 'StaleAttempt' });
  expect(frozen.engine.received).toBe(0);
  expect(readdirSync(frozen.root)).toEqual(['blobs']);
  // The standstill is long over; the task waited in its queue.
  for (let beat = 0; beat < 30; beat++) {
    now += 500;
    pauses.check();
  }
  expect(await call(frozen.activities.rollout, input, handedOut)).toMatchObject({ use: 'trained' });
});

test('a worker that is cut off from Temporal makes no new call, also once it is back; what it recorded is not asked again', async () => {
  let now = 1_000_000;
  const contact = createContact(() => now);
  let lost = (): void => undefined;
  const asked: number[] = [];
  const cutOff = await openWorld(
    {
      async rollout(context) {
        await say(context, `first of ${context.scenario.id}`);
        asked.push(cutOff.engine.received);
        lost();
        await say(context, 'second');
        return { reward: 1 };
      },
    },
    { contact, clock: () => now },
  );
  const input = await rolloutInput(cutOff.store, { attempts: 1 });
  lost = () => void (now += 9_000);
  await call(cutOff.activities.rollout, { ...input, group: 1 });
  contact.answered(now);
  lost = () => void (now += 11_000);
  expect(await failureOf(call(cutOff.activities.rollout, input))).toMatchObject({ type: 'StaleAttempt' });
  expect(cutOff.engine.received).toBe(asked.at(-1));
  // Back, but the server has given its work to another one.
  lost = () => {
    now += 11_000;
    contact.answered(now);
  };
  const again = cutOff.engine.received;
  expect(await failureOf(call(cutOff.activities.rollout, input))).toMatchObject({ type: 'StaleAttempt' });
  expect(cutOff.engine.received).toBe(again);
  // Its successor, or itself with a new task.
  lost = () => undefined;
  await call(cutOff.activities.rollout, input);
  expect(cutOff.engine.received).toBe(again + 1);
});

test('a clock that is behind the server’s hides no standstill from a process that was just thawed', async () => {
  let now = 1_000_000;
  const clock = (): number => now;
  const pauses = startPauseDetector(clock);
  const frozen = await openWorld({}, { pauses, clock });
  const input = await rolloutInput(frozen.store);
  const ofTheServersClock = { currentAttemptScheduledTimestampMs: now + 60_000 };
  now += 30_000;
  pauses.check();
  expect(await failureOf(call(frozen.activities.rollout, input, ofTheServersClock))).toMatchObject({
    type: 'StaleAttempt',
  });
  expect(frozen.engine.received).toBe(0);
  now += 1500;
  pauses.check();
  expect(await call(frozen.activities.rollout, input, ofTheServersClock)).toMatchObject({ use: 'trained' });
});
