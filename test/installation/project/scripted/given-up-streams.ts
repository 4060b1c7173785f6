/** A stream that its reader aborts, before the answer and in it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RolloutContext } from 'temper-rl';
import { chat, chatBody, LOOKS, messages, openai, play, responses, SAYS, text } from './stream-helpers.ts';

/** Helpers that give a stream up; the AI SDK ends such a stream with a part. */
const helpers: Record<string, (context: RolloutContext, when: When) => Promise<void>> = {
  'chat.completions.stream': (context, when) => giveUp(chat(context), when, 'content'),
  'responses.stream': (context, when) => giveUp(responses(context), when, 'response.output_text.delta'),
  'messages.stream': (context, when) => giveUp(messages(context), when, 'text'),
  streamText: async (context, when) => {
    const aborting = new AbortController();
    const types: string[] = [];
    if (when === 'before its answer') setTimeout(() => aborting.abort(), 20);
    for await (const { type } of text(context, aborting.signal).fullStream) {
      if (type === 'text-delta') aborting.abort();
      types.push(type);
    }
    assert.equal(types.at(-1), 'abort');
  },
};

type When = 'before its answer' | 'in its answer';

interface Helper {
  on(event: string, listener: () => void): unknown;
  abort(): void;
  done(): Promise<void>;
}

async function giveUp(helper: object, when: When, delta: string): Promise<void> {
  const stream = helper as Helper;
  let isAborted = false;
  stream.on('abort', () => (isAborted = true));
  if (when === 'before its answer') setTimeout(() => stream.abort(), 20);
  else stream.on(delta, () => stream.abort());
  await assert.rejects(stream.done(), /Request was aborted/);
  assert.ok(isAborted);
}

for (const [helper, abort] of Object.entries(helpers)) {
  test(`${helper} given up before its answer is a call that was never made`, async () => {
    const never = new Promise<string>(() => undefined);
    const calls = await play(
      (context) => abort(context, 'before its answer'),
      () => never,
    );
    assert.equal(calls.length, 0);
  });

  test(`${helper} given up in its answer is a call that was answered, and the next one is another`, async () => {
    const calls = await play(
      async (context) => {
        await abort(context, 'in its answer');
        await openai(context).chat.completions.create({ ...chatBody, model: context.model });
      },
      [LOOKS, 'In the hall.'],
    );
    assert.deepEqual(
      calls.map(({ message }) => message.content),
      [SAYS, 'In the hall.'],
    );
  });
}
