/**
 * Tells what has changed in the store, for all clients together: ten cost as much as one, and without any nothing is read. It
 * also keeps the index of the runs that somebody looked at up to date.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LiveEvent } from '../../../views/api/requests.ts';
import { isEnded } from '../../../store/records/runs/run-reader.ts';
import type { ViewContext } from '../../../views/context/context.ts';
import { listRunRows } from '../../../views/runs/runs.ts';
import { RunWatch } from './run-watch.ts';

type Listener = (event: LiveEvent) => void;

const FOLDER_EVERY_MS = 2000;
/** Each request to a bucket has a price. */
const BUCKET_EVERY_MS = 10_000;
const PROGRESS_EVERY_MS = 500;
const WAITS_EVERY_MS = 5000;

export interface LiveFeedOptions {
  readonly everyMs?: number;
  /** What a run waits for, by its server. */
  readonly readWait?: (run: string) => Promise<string | null>;
  /** Told once for each failure in a row. */
  readonly onFailure?: (error: unknown) => void;
}

export class LiveFeed {
  readonly #context: ViewContext;
  readonly #options: LiveFeedOptions;
  readonly #everyMs: number;
  readonly #listeners = new Set<Listener>();
  readonly #watch: RunWatch;
  /** Runs whose attempts somebody looked at. */
  readonly #wanted = new Set<string>();
  readonly #stale = new Set<string>();
  /** Runs that have changed since their rows were told. */
  readonly #changed = new Set<string>();
  /** By run, as far as any of them waits. */
  readonly #waits = new Map<string, string>();
  #live: readonly string[] = [];
  #waitsAt = 0;
  #polling: Promise<void> | null = null;
  #indexing: Promise<void> | null = null;
  #ended = new AbortController();
  #hasFailed = false;
  #revision = 0;

  constructor(context: ViewContext, options: LiveFeedOptions = {}) {
    this.#context = context;
    this.#options = options;
    this.#watch = new RunWatch(context.store);
    this.#everyMs = options.everyMs ?? (context.store.uri.startsWith('s3:') ? BUCKET_EVERY_MS : FOLDER_EVERY_MS);
  }

  /** Grows with each event. */
  get revision(): number {
    return this.#revision;
  }

  /** Returns how to end it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    this.#polling ??= this.#poll();
    return () => void this.#listeners.delete(listener);
  }

  waitOf(run: string): string | null {
    return this.#waits.get(run) ?? null;
  }

  tell(event: LiveEvent): void {
    this.#revision += 1;
    for (const listener of this.#listeners) listener(event);
  }

  /**
   * A run is looked at: its index is made, and kept up to date while somebody listens. `isSearch`: its attempts are
   * searched, which is also done by those who do not listen.
   */
  want(run: string, isSearch: boolean): void {
    if (this.#wanted.has(run) && !isSearch) return;
    this.#wanted.add(run);
    this.#index(run);
  }

  /** An action told a run something. */
  forget(run: string): void {
    this.#watch.forget(run);
  }

  async close(): Promise<void> {
    this.#ended.abort();
    this.#listeners.clear();
    await this.#polling;
    await this.#indexing;
  }

  async #poll(): Promise<void> {
    const { signal } = this.#ended;
    let isFirst = true;
    while (this.#listeners.size > 0 && !signal.aborted) {
      try {
        await this.#look(isFirst);
        this.#hasFailed = false;
        isFirst = false;
      } catch (error) {
        if (!this.#hasFailed) this.#options.onFailure?.(error);
        this.#hasFailed = true;
      }
      await sleep(this.#everyMs, undefined, { signal }).catch(() => undefined);
    }
    // In one go with the last look at the listeners: none comes between.
    this.#polling = null;
  }

  /** The first look after a pause tells the rows alone: clients have just read the rest. */
  async #look(isFirst: boolean): Promise<void> {
    const { changes, isGone } = await this.#watch.look();
    for (const { run } of changes) this.#changed.add(run);
    await this.#readWaits();
    if (this.#changed.size === 0 && !isGone && !isFirst) return;
    const runs = await listRunRows(this.#context, { changed: isFirst ? undefined : this.#changed });
    this.#changed.clear();
    this.#live = runs.filter((row) => !isEnded(row)).map(({ run }) => run);
    this.tell({ kind: 'runs', runs });
    for (const { run, state } of changes) {
      if (this.#wanted.has(run)) this.#index(run);
      if (isFirst || state === null) continue;
      this.tell({ kind: 'run', run, step: state.step, state: state.state });
    }
  }

  /**
   * An activity that fails and is retried changes nothing in the store. All runs are asked about at once, so that a server
   * that does not answer delays events by one time limit.
   */
  async #readWaits(): Promise<void> {
    const { readWait } = this.#options;
    if (readWait === undefined || performance.now() < this.#waitsAt) return;
    this.#waitsAt = performance.now() + WAITS_EVERY_MS;
    const runs = new Set([...this.#live, ...this.#waits.keys()]);
    const read = async (run: string) => [run, this.#live.includes(run) ? await readWait(run) : null] as const;
    for (const [run, wait] of await Promise.all([...runs].map(read))) {
      if (wait === this.waitOf(run)) continue;
      if (wait === null) this.#waits.delete(run);
      else this.#waits.set(run, wait);
      this.#changed.add(run);
    }
  }

  /** One run after the other. */
  #index(run: string): void {
    this.#stale.add(run);
    this.#indexing ??= this.#indexAll().finally(() => {
      this.#indexing = null;
    });
  }

  async #indexAll(): Promise<void> {
    const { index } = this.#context;
    for (const run of this.#stale) {
      if (this.#ended.signal.aborted) return;
      this.#stale.delete(run);
      const tell = (): void => this.tell({ kind: 'index', run, progress: index.progress(run) });
      const telling = setInterval(tell, PROGRESS_EVERY_MS);
      try {
        await index.update(run);
      } catch (error) {
        this.#wanted.delete(run);
        this.#options.onFailure?.(error);
      } finally {
        clearInterval(telling);
      }
      tell();
    }
  }
}
