/** An engine that is unavailable for 30 seconds while a stream is open: the client sees comments, then the answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RolloutContext } from 'temper-rl';
import { chat, LOOKS, messages, play, responses, SAYS, text } from './stream-helpers.ts';

const OUTAGE_S = 30;
const KEEP_ALIVE = /^: waiting$/gm;

/** The text that each helper has read, with the time-outs and retries that it has by default. */
const helpers: Record<string, (context: RolloutContext) => Promise<string>> = {
  'chat.completions.stream': async (context) => (await chat(context).finalContent()) ?? '',
  'responses.stream': async (context) => (await responses(context).finalResponse()).output_text,
  'messages.stream': (context) => messages(context).finalText(),
  streamText: async (context) => (await text(context).steps)[0]?.text ?? '',
};

for (const [helper, read] of Object.entries(helpers)) {
  test(`${helper} does not notice that the engine was away`, async (t) => {
    // A clock of its own, for the product and the clients: nobody waits.
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    const tick = async (ms: number) => {
      t.mock.timers.tick(ms);
      for (let turn = 0; turn < 5; turn++) await nextTurn();
    };
    let isAsked = false;
    let answer!: (answer: typeof LOOKS) => void;
    const answering = new Promise<typeof LOOKS>((resolve) => (answer = resolve));
    const bodies: Promise<string>[] = [];
    const watched = async ({ fetch, ...context }: RolloutContext) => {
      const counted: typeof fetch = async (...request) => {
        const response = await fetch(...request);
        bodies.push(response.clone().text());
        return response;
      };
      assert.equal(await read({ ...context, fetch: counted }), SAYS);
    };
    const unavailable = () => {
      isAsked = true;
      return answering;
    };
    let isOver = false;
    const playing = play(watched, [unavailable, 'In the hall.']).finally(() => (isOver = true));
    while (!isAsked) await tick(1);
    for (let second = 0; second < OUTAGE_S; second++) await tick(1000);
    answer(LOOKS);
    while (!isOver) await tick(1);
    const calls = await playing;
    // The AI SDK goes on after the call of its tool.
    assert.equal(bodies.length, calls.length);
    assert.equal((await bodies[0])?.match(KEEP_ALIVE)?.length, OUTAGE_S / 5 - 1);
  });
}
