/** Endpoints of `temper ui` besides those of the views. */
import type { ChatRequest, ServerInfo } from '../../views/api/requests.ts';
import { parseJsonBody, type ActionDesk } from './actions/answer-action.ts';
import type { UiChat } from './chat/chat.ts';
import { streamEvents } from './live/event-stream.ts';
import type { LiveFeed } from './live/live-feed.ts';
import { formatEvent, type Endpoint } from './server/endpoint.ts';

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
