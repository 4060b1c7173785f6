/** Endpoints of `temper ui` besides those of the views. */
import { scheduleList } from '../../operations/schedules.ts';
import type { ChatRequest, LiveEvent, ServerInfo } from '../../views/api/requests.ts';
import { parseJsonBody, type ActionDesk } from './actions/answer-action.ts';
import type { UiChat } from './chat/chat.ts';
import type { LiveFeed } from './live/live-feed.ts';
import { formatEvent, type Endpoint } from './server/server.ts';
import { once, setMaxListeners } from 'node:events';

interface Parts {
  readonly info: () => ServerInfo;
  readonly feed: LiveFeed;
  readonly desk: ActionDesk;
  readonly chat: () => Promise<UiChat>;
  /** Address of a link that works once. */
  readonly makeLink: () => string;
}

export function uiEndpoints({ info, feed, desk, chat, makeLink }: Parts): readonly Endpoint[] {
  return [
    { method: 'GET', path: 'info', isAction: false, answer: () => Promise.resolve({ json: info() }) },
    {
      method: 'GET',
      path: 'events',
      isAction: false,
      answer: ({ signal }) => Promise.resolve({ events: streamEvents(feed, signal) }),
    },
    {
      method: 'GET',
      path: 'schedules',
      isAction: false,
      answer: async ({ signal }) => ({ json: await desk.read(scheduleList, signal) }),
    },
    { method: 'POST', path: 'links', isAction: false, answer: () => Promise.resolve({ json: { url: makeLink() } }) },
    {
      method: 'POST',
      path: 'actions',
      isAction: true,
      answer: async ({ body, signal }) => ({ json: await desk.answer(body, signal) }),
    },
    {
      method: 'POST',
      path: 'chat',
      isAction: true,
      answer: async ({ body, signal }) => ({ events: streamChatEvents(await chat(), body, signal) }),
    },
  ];
}

async function* streamChatEvents(chat: UiChat, body: string, signal: AbortSignal): AsyncGenerator<string> {
  // The chat checks what it was asked.
  for await (const event of chat.answer(parseJsonBody(body) as ChatRequest, signal)) yield formatEvent(event);
}

const HEARTBEAT_MS = 15_000;
/** A comment, which clients ignore. It keeps proxies from ending a silent connection. */
const HEARTBEAT = ': still here\n\n';
/** Clients wait so long before they connect anew. */
const RETRY = 'retry: 2000\n\n';

/** Each client gets the same text. */
const texts = new WeakMap<LiveEvent, string>();

function textOf(event: LiveEvent): string {
  const text = texts.get(event) ?? formatEvent(event);
  texts.set(event, text);
  return text;
}

interface Source {
  listen(listener: (event: LiveEvent) => void): () => void;
}

/** A client's stream of server-sent events. */
export async function* streamEvents(source: Source, signal: AbortSignal): AsyncGenerator<string> {
  setMaxListeners(0, signal);
  // A client that reads slowly gets the newest of each kind.
  const waiting = new Map<string, string>();
  const wakeups = new EventTarget();
  const add = (subject: string, text: string): void => {
    waiting.delete(subject);
    waiting.set(subject, text);
    wakeups.dispatchEvent(new Event('wake'));
  };
  const end = source.listen((event) => add(`${event.kind} ${'run' in event ? event.run : ''}`, textOf(event)));
  const beat = setInterval(() => add('heartbeat', HEARTBEAT), HEARTBEAT_MS);
  try {
    yield RETRY;
    while (!signal.aborted) {
      const [next] = waiting;
      if (next !== undefined) {
        waiting.delete(next[0]);
        yield next[1];
      } else await once(wakeups, 'wake', { signal }).catch(() => undefined);
    }
  } finally {
    clearInterval(beat);
    end();
  }
}
