/** The ten cases of `npm run bench -- soak`, each with the outcome that is right for it. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Ask, Ending, Outcome } from './soak-client.ts';
import { holdsWithin, LONG_PROMPT, MODELS, TOOLS, type SoakServer } from './soak-server.ts';

export interface Round {
  readonly server: SoakServer;
  readonly number: number;
  /** Requests of the load beside the cases, at most. */
  readonly beside: number;
}

export interface Case {
  readonly name: string;
  play(round: Round): Promise<Result[]>;
}

/** Requests of one kind: how each ended, and those that ended as they should not. */
export interface Result {
  readonly wanted: string;
  readonly endings: readonly Ending[];
  readonly wrong: readonly Outcome[];
}

const AT_ONCE = 500;
const QUEUED = 5000;
const STOPS = 1000;
const BODY_BYTES = 100 * 1000 * 1000;
const SLOW_DEADLINE_MS = 5000;
/** The server's grace after a deadline, and time to notice. */
const HANG_UP_MS = 6000;
const FREED_MS = 10_000;

export const CASES: readonly Case[] = [
  {
    name: '500 at once',
    play: ({ server: { ask } }) =>
      results([['200', times(AT_ONCE, (i) => ask(chat({ seed: i, max_tokens: 8 }))), is(200)]]),
  },
  {
    name: '5,000 queued',
    play: ({ server: { ask } }) =>
      results([['200', times(QUEUED, (i) => ask(chat({ seed: i, max_tokens: 2 }))), is(200)]]),
  },
  { name: 'clients that vanish', play: playVanishing },
  { name: '10,000-token prompts', play: playLongPrompts },
  {
    name: '1,000 stop strings',
    play: ({ server: { ask } }) => {
      const stops = (count: number, length: number): string[] =>
        Array.from({ length: count }, (_, i) => `${i} `.padEnd(length, 'stop '));
      const refused = times(20, () => ask(chat({ stop: stops(STOPS, 8) })));
      const answered = times(20, () => ask(chat({ stop: stops(16, 3000), stream: true, max_tokens: 64 })));
      return results([
        ['400 that names stop', refused, is(400, /stop must be .* at most 16/)],
        ['200 with 16 long ones', answered, is(200, /\[DONE\]/)],
      ]);
    },
  },
  {
    name: 'a broken schema',
    play: ({ server: { ask } }) => {
      const schema = { type: 'object', properties: { cell: { type: 'integre' } } };
      const asked = { response_format: { type: 'json_schema', json_schema: { name: 'move', schema } } };
      return results([
        ['400 that names the place', times(20, () => ask(chat(asked))), is(400, /at #\/properties\/cell/)],
      ]);
    },
  },
  {
    name: '200 tools',
    play: ({ server: { ask, short } }) => {
      const tools = (count: number): object[] =>
        Array.from({ length: count }, (_, i) => ({ type: 'function', function: { name: `tool${i}` } }));
      const asked = { model: MODELS.long.name, tools: tools(TOOLS), max_tokens: 4 };
      const within = times(2, (i) => ask(chat({ ...asked, seed: i })));
      const beyond = times(20, () => ask(chat({ tools: tools(short.tools) })));
      return results([
        ['200 if they fit', within, is(200)],
        ['400 if they do not', beyond, is(400, /"context_length_exceeded"/)],
      ]);
    },
  },
  {
    name: 'invalid UTF-8',
    play: ({ server: { ask, paths } }) => {
      const body = Buffer.from('{"model": "pocket", "messages": [{"role": "user", "content": "\xff\xfe"}]}', 'latin1');
      return results([['400', times(40, (i) => ask({ path: paths[i % paths.length]!, body })), is(400)]]);
    },
  },
  {
    name: '100 MB bodies',
    play: ({ server: { ask, takesAll } }) => {
      const headers = { 'content-length': String(BODY_BYTES) };
      const announced = times(4, () => ask({ headers, body: longBody }));
      const chunked = times(4, () => ask({ headers: { 'transfer-encoding': 'chunked' }, body: longBody }));
      return results([
        [
          takesAll ? '413 of an announced one' : '413 before all is sent',
          announced,
          (outcome) => is(413)(outcome) && (takesAll || outcome.sentBytes < BODY_BYTES),
        ],
        ['413', chunked, is(413)],
      ]);
    },
  },
  { name: 'slow readers', play: playSlowReaders },
];

/** A body of a chat; `changes` to the plainest one. */
export function chat(changes: Record<string, unknown>): Ask {
  const messages = [{ role: 'user', content: '1x34o6789' }];
  return { body: JSON.stringify({ model: MODELS.short.name, messages, ignore_eos: true, ...changes }) };
}

async function playVanishing({ server, beside }: Round): Promise<Result[]> {
  const forLong = { max_tokens: 4000 };
  const waiting = times(AT_ONCE / 2, (i) => server.ask({ ...chat(forLong), leaveAfterMs: 200 + 5 * i }));
  const hearing = times(AT_ONCE / 2, () =>
    server.ask({
      ...chat({ ...forLong, stream: true }),
      leaveAfterMs: 20_000,
      listen: (response, asking) => void response.once('data', () => asking.destroy()),
    }),
  );
  // Gone at the first token or before: `lost`, because the request was destroyed, or `left`.
  const found = await results([
    ['left', waiting, ({ ending }) => ending === 'left'],
    ['left a stream', hearing, ({ ending }) => ending === 'left' || ending === 'lost'],
  ]);
  const areFree = await holdsWithin(server, ({ running, waiting: queued }) => running + queued <= beside, FREED_MS);
  const freed: Outcome = { ending: areFree ? 200 : 'hung', text: '', firstMs: null, sentBytes: 0 };
  return [...found, resultOf('places free at once', [freed], is(200))];
}

/** One byte is a token; each round has prompts of its own. */
function playLongPrompts({ server: { ask, short }, number }: Round): Promise<Result[]> {
  const asked = (i: number, length: number, more: object): Ask => {
    const content = `${number} ${i} `.padEnd(length, 'a long page ');
    return chat({ messages: [{ role: 'user', content }], ...more });
  };
  const answered = times(2, (i) => ask(asked(i, LONG_PROMPT, { model: MODELS.long.name, max_tokens: 4 })));
  const refused = times(20, (i) => ask(asked(i, short.beyond, {})));
  const numbers = new RegExp(`${short.context} tokens.*${`${short.beyond}`.slice(0, -2)}\\d\\d`);
  return results([
    ['200 if they fit', answered, is(200)],
    ['400 with both numbers if they do not', refused, is(400, numbers)],
  ]);
}

/** Some never read, and are hung up after their deadline; some read slowly, and get all of it. */
async function playSlowReaders({ server: { ask } }: Round): Promise<Result[]> {
  const long = { stream: true, logprobs: true, top_logprobs: 20 };
  const asleep = times(64, () =>
    ask({
      ...chat({ ...long, max_tokens: 4000 }),
      headers: { 'x-temper-deadline-ms': String(SLOW_DEADLINE_MS) },
      withinMs: SLOW_DEADLINE_MS + 3 * HANG_UP_MS,
      listen: (response) => {
        response.pause();
        // The client notices a disconnect only when it reads.
        void sleep(SLOW_DEADLINE_MS + HANG_UP_MS).then(() => response.resume());
      },
    }),
  );
  const slow = times(16, () =>
    ask({
      ...chat({ ...long, max_tokens: 100 }),
      listen: (response) => {
        response.on('data', () => {
          response.pause();
          void sleep(50).then(() => response.resume());
        });
      },
    }),
  );
  return results([
    ['answered, or hung up', asleep, ({ ending }) => ending === 'lost' || ending === 200 || ending === 504],
    ['200 to its end', slow, is(200, /\[DONE\]/)],
  ]);
}

function* longBody(): Generator<Buffer> {
  const chunk = Buffer.alloc(100_000, ' ');
  for (let sent = 0; sent < BODY_BYTES; sent += chunk.length) yield chunk;
}

function times(count: number, start: (index: number) => Promise<Outcome>): Promise<Outcome[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => start(i)));
}

function is(status: number, text = /^/): (outcome: Outcome) => boolean {
  return (outcome) => outcome.ending === status && text.test(outcome.text);
}

function results(
  asked: readonly [wanted: string, outcomes: Promise<Outcome[]>, isRight: (outcome: Outcome) => boolean][],
): Promise<Result[]> {
  return Promise.all(asked.map(async ([wanted, outcomes, isRight]) => resultOf(wanted, await outcomes, isRight)));
}

export function resultOf(wanted: string, outcomes: readonly Outcome[], isRight: (outcome: Outcome) => boolean): Result {
  const endings = outcomes.map(({ ending }) => ending);
  return { wanted, endings, wrong: outcomes.filter((outcome) => !isRight(outcome)) };
}
