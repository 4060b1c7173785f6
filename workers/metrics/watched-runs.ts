/** The runs that a worker tells metrics of: those of its agents that are under way, and for a while those that ended. */
import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { TemperError } from '../../core/contract/failures.ts';
import { runKey } from '../../store/layout.ts';
import { readStored, RunFileSchema } from '../../store/records/file-schemas.ts';
import { isEnded, listRuns, readState, type RunFile } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { ProcessMetrics } from './process-metrics.ts';
import { RunFactsReader, type MetricFacts } from './run-facts.ts';
import type { WatchedRun } from './run-families.ts';
import { readWaits, type RunWaits } from './run-waits.ts';

export interface WatchedRunsOptions {
  readonly store: Store;
  /** Names of the agents that this process plays. */
  readonly agents: readonly string[];
  readonly metrics: Pick<ProcessMetrics, 'collectErrors'>;
  /** Null: nobody says what the runs wait for. */
  readonly client: Client | null;
  readonly now?: () => number;
}

interface Watched {
  readonly reader: RunFactsReader;
  /** Time at which this process found that the run had ended. */
  endedAtMs: number | null;
}

/** Long enough for the last values to be scraped, and for a person to see them. */
const KEPT_AFTER_END_MS = 60 * 60 * 1000;
const READ_AT_ONCE = 8;

export class WatchedRuns {
  readonly #options: WatchedRunsOptions;
  readonly #runs = new Map<string, Watched>();
  /** Activities told of them, and their files are not read yet. */
  readonly #told = new Set<string>();
  #hasListed = false;

  constructor(options: WatchedRunsOptions) {
    this.#options = options;
  }

  /** An activity of this run came: it is under way, also if it had ended before. */
  tell(run: string): void {
    const watched = this.#runs.get(run);
    if (watched === undefined) this.#told.add(run);
    else watched.endedAtMs = null;
  }

  /** A run whose files cannot be read is left out, and counted. */
  async collect(): Promise<WatchedRun[]> {
    await this.#find();
    const limit = pLimit(READ_AT_ONCE);
    const found = await Promise.all([...this.#runs].map(([run, watched]) => limit(() => this.#read(run, watched))));
    return found.filter((run) => run !== null);
  }

  async #find(): Promise<void> {
    try {
      if (!this.#hasListed) await this.#list();
      this.#hasListed = true;
      for (const run of this.#told) {
        await this.#addReadable(run);
        this.#told.delete(run);
      }
    } catch {
      this.#options.metrics.collectErrors.add(['store']);
    }
  }

  /** Runs that were under way when this process started. */
  async #list(): Promise<void> {
    const { store, agents } = this.#options;
    if (agents.length === 0) return;
    const limit = pLimit(READ_AT_ONCE);
    const runs = await listRuns(store);
    await Promise.all(runs.map((run) => limit(() => this.#addUnlessEnded(run))));
  }

  async #addUnlessEnded(run: string): Promise<void> {
    // A state that cannot be read says nothing: the worker's activities tell of the run if it is under way.
    const state = await readState(this.#options.store, run).catch(() => null);
    if (state !== null && !isEnded(state)) await this.#addReadable(run);
  }

  /** A record that is broken, or of a later version, must not hide the other runs; an outage passes. */
  async #addReadable(run: string): Promise<void> {
    try {
      await this.#add(run);
    } catch (error) {
      if (error instanceof TemperError && error.retryable) throw error;
      this.#options.metrics.collectErrors.add(['store']);
    }
  }

  async #add(run: string): Promise<void> {
    const { store, agents } = this.#options;
    const file: RunFile | null = await readStored(store, runKey(run), RunFileSchema);
    if (file === null || !agents.includes(file.config.agent) || this.#runs.has(run)) return;
    this.#runs.set(run, { reader: new RunFactsReader(store, file.config), endedAtMs: null });
  }

  async #read(run: string, watched: Watched): Promise<WatchedRun | null> {
    const { metrics, now = Date.now } = this.#options;
    let facts: MetricFacts | null;
    try {
      facts = await watched.reader.read();
    } catch {
      metrics.collectErrors.add(['store']);
      return null;
    }
    if (facts === null) return null;
    if (!isEnded(facts.state)) return { facts, waits: await this.#readWaits(run) };
    watched.endedAtMs ??= now();
    if (now() - watched.endedAtMs > KEPT_AFTER_END_MS) this.#runs.delete(run);
    return { facts, waits: null };
  }

  async #readWaits(run: string): Promise<RunWaits | null> {
    const { client, store, metrics } = this.#options;
    if (client === null) return null;
    try {
      return await readWaits(client, await store.id(), run);
    } catch {
      metrics.collectErrors.add(['temporal']);
      return null;
    }
  }
}
