/** A client's stream of server-sent events. */
import { once, setMaxListeners } from 'node:events';
import type { LiveEvent } from '../../../views/api/requests.ts';
import { formatEvent } from '../server/endpoint.ts';

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
