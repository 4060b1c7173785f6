/** The requests of the HTTP transport: answers of bounded size, and told when one has ended. */
import { MAX_MESSAGE_BYTES } from './stdio-transport.ts';

interface Watch {
  /** The answer's stream has ended, or broke off; null for a request that is no call. */
  readonly onEnd: (id: string | number | null) => void;
  /** The transport goes on reading an answer where its stream broke off. */
  readonly onResume: () => void;
}

type McpFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * No stream is opened for what a server says unasked: it is one connection more for each attempt, and an attempt keeps
 * the tools that it began with.
 */
export function createBoundedFetch({ onEnd, onResume }: Watch): McpFetch {
  return async (url, init) => {
    const isResumed = new Headers(init?.headers).has('last-event-id');
    if (init?.method === 'GET' && !isResumed) return new Response(null, { status: 405 });
    if (isResumed) onResume();
    const response = await fetch(url, init);
    if (!response.ok || response.body === null) return response;
    const id = idOf(init?.body);
    const { status, statusText, headers } = response;
    return new Response(
      bounded(response.body, () => onEnd(id)),
      { status, statusText, headers },
    );
  };
}

function idOf(body: RequestInit['body']): string | number | null {
  const { id = null } = typeof body === 'string' ? (JSON.parse(body) as { id?: string | number }) : {};
  return id;
}

function bounded(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let bytes = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { value, done } = await reader.read();
        bytes += value?.byteLength ?? 0;
        if (bytes > MAX_MESSAGE_BYTES) throw new Error(`the answer has more than ${MAX_MESSAGE_BYTES} bytes`);
        if (value !== undefined) controller.enqueue(value);
        if (!done) return;
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        controller.error(error);
        await reader.cancel().catch(() => undefined);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
