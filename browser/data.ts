/** Data of the pages: answers of the API, or of an export's files, kept until something says that they are old. */
import { useEffect, useState } from 'preact/hooks';
import type { ActionRequest, ActionResult, ApiError, ServerInfo } from '../views/api/requests.ts';
import { isExport, readExported } from './exported.ts';
import type { RunRow } from '../views/api/run-views.ts';

export type Loaded<T> =
  | { readonly state: 'loading'; readonly value: T | null }
  | { readonly state: 'ready'; readonly value: T }
  /** `value` is the last answer, if there was one. */
  | { readonly state: 'failed'; readonly value: T | null; readonly message: string };

interface Entry {
  value: unknown;
  message: string | null;
  isOld: boolean;
  pending: boolean;
  /** Answers that came by themselves. */
  puts: number;
  readonly readers: Set<() => void>;
}

const entries = new Map<string, Entry>();
/** Answers that are kept without a reader. */
const MOST_ENTRIES = 200;

function entryOf(path: string): Entry {
  const known = entries.get(path);
  if (known !== undefined) return known;
  for (const [oldest, { readers }] of entries) {
    if (entries.size < MOST_ENTRIES) break;
    if (readers.size === 0) entries.delete(oldest);
  }
  const entry: Entry = { value: undefined, message: null, isOld: true, pending: false, puts: 0, readers: new Set() };
  entries.set(path, entry);
  return entry;
}

function tellReaders({ readers }: Entry): void {
  for (const tell of readers) tell();
}

/** Never changes once it is there. */
const isFinal = (path: string): boolean => /\/attempts\/[^/]+\/(tokens|raw)$/.test(path);

/** The answer of `start`, with any query, and with all below it unless told otherwise, is fetched again where it is shown. */
export function markOld(start: string, { isDeep = true } = {}): void {
  for (const [path, entry] of entries) {
    const isMeant = path === start || path.startsWith(`${start}?`) || (isDeep && path.startsWith(`${start}/`));
    if (!isMeant || (isFinal(path) && entry.value !== undefined)) continue;
    entry.isOld = true;
    if (entry.readers.size > 0) void refresh(path, entry);
  }
}

/** Everything shown is fetched again. */
export function markAllOld(): void {
  for (const path of entries.keys()) markOld(path);
}

/** An answer that came by itself. */
export function putData(path: string, value: unknown): void {
  const entry = entryOf(path);
  Object.assign(entry, { value, isOld: false, message: null, puts: entry.puts + 1 });
  tellReaders(entry);
}

async function refresh(path: string, entry: Entry): Promise<void> {
  if (entry.pending) return;
  entry.pending = true;
  // Told to be old while it is fetched: it is fetched once more.
  while (entry.isOld) {
    entry.isOld = false;
    const { puts } = entry;
    const answer = await getJson(path).then(
      (value) => ({ value, message: null }),
      (error: unknown) => ({ message: (error as Error).message }),
    );
    // What came by itself meanwhile is newer.
    if (entry.puts === puts) Object.assign(entry, answer);
    tellReaders(entry);
  }
  entry.pending = false;
}

function loadedOf<T>({ value, message, isOld, pending }: Entry): Loaded<T> {
  const kept = value === undefined ? null : (value as T);
  if (message !== null) return { state: 'failed', value: kept, message };
  return kept === null || isOld || pending ? { state: 'loading', value: kept } : { state: 'ready', value: kept };
}

/** Answer of `/api/PATH`. While it is fetched again, the one before stays. `null` asks nothing. */
export function useData<T>(path: string | null): Loaded<T> {
  const [, setVersion] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const entry = entryOf(path);
    const tell = (): void => setVersion((version) => version + 1);
    entry.readers.add(tell);
    if (entry.message !== null) entry.isOld = true;
    if (entry.isOld) void refresh(path, entry);
    tell();
    return () => void entry.readers.delete(tell);
  }, [path]);
  if (path === null) return { state: 'loading', value: null };
  const entry = entries.get(path);
  return entry === undefined ? { state: 'loading', value: null } : loadedOf<T>(entry);
}

/** The same as `useData`; between two paths, the answer of the last one stays, so that a changed filter does not blank the page. */
export function useSteadyData<T>(path: string | null): Loaded<T> {
  const loaded = useData<T>(path);
  const [last, setLast] = useState<T | null>(null);
  useEffect(() => {
    if (loaded.value !== null) setLast(loaded.value);
  }, [loaded.value]);
  return loaded.state === 'loading' ? { state: 'loading', value: loaded.value ?? last } : loaded;
}

export async function getJson<T>(path: string): Promise<T> {
  if (isExport()) return (await readExported(path)) as T;
  return readAnswer(await request(`api/${path}`, {}));
}

export async function postAction(action: ActionRequest): Promise<ActionResult> {
  return readAnswer(await post('actions', action));
}

export function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return request(`api/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

async function request(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new Error('temper ui does not answer; start it again in the terminal', { cause: error });
  }
}

async function readAnswer<T>(response: Response): Promise<T> {
  if (response.ok) return response.json() as Promise<T>;
  const refused = (await response.json().catch(() => null)) as ApiError | null;
  throw new Error(refused?.error.message ?? `the server answered ${response.status}`);
}

/** The row of a run, kept up to date by the server's events. */
export function useRunRow(run: string | null): RunRow | null {
  const { value } = useData<readonly RunRow[]>(run === null ? null : 'runs');
  return value?.find((row) => row.run === run) ?? null;
}

export function useServerInfo(): ServerInfo | null {
  return useData<ServerInfo>('info').value;
}
