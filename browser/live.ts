/** Events of the server: which runs have changed, how far the index is, and whether the server is still there. */
import { useEffect, useState } from 'preact/hooks';
import type { IndexProgress } from '../views/api/attempt-views.ts';
import type { LiveEvent } from '../views/api/requests.ts';
import { markAllOld, markOld, putData } from './data.ts';
import { isExport } from './exported.ts';

/** `export`: a static page, which nothing changes. */
export type LiveState = 'connecting' | 'live' | 'lost' | 'export';

let connection: LiveState = 'connecting';
const connectionListeners = new Set<() => void>();
const progress = new Map<string, IndexProgress>();
const RETRY_MS = 3000;

function setConnection(next: LiveState): void {
  if (next === connection) return;
  const wasLost = connection === 'lost';
  connection = next;
  if (wasLost && next === 'live') markAllOld();
  for (const tell of connectionListeners) tell();
}

/** Listens until the returned function is called. */
export function followEvents(): () => void {
  if (isExport()) {
    setConnection('export');
    return () => undefined;
  }
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const open = (): void => {
    source = new EventSource('api/events');
    source.addEventListener('open', () => setConnection('live'));
    source.addEventListener('message', ({ data }: MessageEvent<string>) => take(JSON.parse(data) as LiveEvent));
    source.addEventListener('error', () => {
      setConnection('lost');
      // The browser tries again by itself, but not after a refusal.
      if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, RETRY_MS);
    });
  };
  open();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}

function take(event: LiveEvent): void {
  if (event.kind === 'runs') putData('runs', event.runs);
  else if (event.kind === 'info') putData('info', event.info);
  else if (event.kind === 'index') takeProgress(event.run, event.progress);
  else {
    markOld(`runs/${encodeURIComponent(event.run)}`);
    markOld('compare');
  }
}

function takeProgress(run: string, next: IndexProgress): void {
  const path = `runs/${encodeURIComponent(run)}`;
  // The intervals of all evaluations come with the index.
  if (next.isComplete && progress.get(run)?.isComplete !== true) markOld(`${path}/curve`);
  progress.set(run, next);
  markOld(`${path}/attempts`, { isDeep: false });
}

export function useConnection(): LiveState {
  const [shown, setShown] = useState(connection);
  useEffect(() => {
    const tell = (): void => setShown(connection);
    connectionListeners.add(tell);
    tell();
    return () => void connectionListeners.delete(tell);
  }, []);
  return shown;
}
