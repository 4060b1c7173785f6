/** Engines that answer chats and replays: the project's running one, else its own, started on first use. */
import { EventEmitter, once } from 'node:events';
import pLimit from 'p-limit';

import { TemperError } from '../../../core/contract/failures.ts';
import type { Place } from '../../../operations/operation.ts';
import type { EngineAddress } from '../../../play/connections/engine-connection.ts';
import { isUnderWay, listRuns } from '../../../store/records/runs/run-reader.ts';
import { ServerRecord } from '../../../store/records/production/servers.ts';
import type { Store } from '../../../store/store.ts';
import { loadConfig, type TemperConfig } from '../../../workers/config/config.ts';
import { trainedBase } from '../../../workers/config/loaded-base.ts';
import { runningEngine } from '../../../workers/local-stack/running-stack.ts';
import { loadPolicy, type ServedEngine } from '../../../workers/serving/served-engine.ts';
import { READ_AT_ONCE } from '../../../store/records/runs/read-runs.ts';
import { startPolicyEngine } from '../../players/start-policy-engine.ts';
import type { EngineModel } from './find-model.ts';

/** Where actions of `temper ui` work. */
export interface UiPlace extends Place {
  /** Those that answer chats. */
  readonly engines: () => Promise<Engines>;
  /** Whether the client named the request, and may send it again. */
  readonly isNamed: boolean;
}

export interface EnginesOptions {
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  readonly store: Store;
  /** URI of a store that is not the project's; null: the project's. */
  readonly storeUri: string | null;
}

type Tell = (text: string) => void;

interface Started {
  readonly engine: Promise<ServedEngine>;
  /** Those who wait for it. */
  readonly listeners: Set<Tell>;
  isReady: boolean;
  /** Chats and replays that ask it; their engine is not closed. */
  users: number;
}

/** Base models differ: one engine of ours serves one way of loading one of them. */
const OWN_ENGINES = 2;

export class Engines {
  readonly #options: EnginesOptions;
  readonly #startEngine: typeof startPolicyEngine;
  readonly #own = new Map<string, Started>();
  readonly #over = new AbortController();
  readonly #closing = new Set<Promise<void>>();
  /** Emits `free` when an engine loses its last user, or ends. */
  readonly #places = new EventEmitter().setMaxListeners(0);
  /** Policies that were asked, and where the store shows them. */
  readonly #served = new Set<string>();
  readonly #shown: ServerRecord;

  /** `start`: how an engine is started. */
  constructor(options: EnginesOptions, start = startPolicyEngine) {
    this.#options = options;
    this.#startEngine = start;
    const warn = (line: string): void => console.error(line);
    this.#shown = new ServerRecord({ store: options.store, command: 'temper ui', records: null, warn });
  }

  /** Resolves once the engine can be asked for the model, until `signal` ends; `tell` says what is waited for. */
  async open(model: EngineModel, tell: Tell, signal: AbortSignal): Promise<EngineAddress> {
    const config = await this.#config();
    const running = this.#options.storeUri === null ? runningEngine(this.#options.project, config) : null;
    if (running !== null) {
      tell(await this.#describeShared());
      return running;
    }
    const started = await this.#start(model, config, tell, signal);
    if (!this.#served.has(model.model)) await this.#shown.show([...this.#served.add(model.model)]);
    try {
      const engine = await unlessAborted(started.engine, signal);
      await loadPolicy(engine, model.model, AbortSignal.any([signal, this.#over.signal]));
      started.isReady = true;
      return engine.address()!;
    } finally {
      started.listeners.delete(tell);
    }
  }

  async close(): Promise<void> {
    this.#over.abort();
    for (const name of this.#own.keys()) this.#close(name);
    await Promise.all(this.#closing);
    await this.#shown.end();
  }

  async #config(): Promise<TemperConfig> {
    const { project, env, storeUri } = this.#options;
    const config = await loadConfig(project, env);
    return storeUri === null ? config : { ...config, store: storeUri };
  }

  /** Never slows a run without saying so. */
  async #describeShared(): Promise<string> {
    const { store } = this.#options;
    const names = await listRuns(store);
    const areLive = await pLimit(READ_AT_ONCE).map(names, (name) => isUnderWay(store, name));
    const live = names.filter((_, index) => areLive[index]);
    if (live.length === 0) return "asking the engine of this project's local stack";
    const [runs, use] = live.length === 1 ? [`run ${live[0]}`, 'uses it'] : [`runs ${live.join(', ')}`, 'use it'];
    return `asking the engine of this project's local stack: ${runs} ${use}, too, and may be slowed down by this chat`;
  }

  async #start(model: EngineModel, config: TemperConfig, tell: Tell, signal: AbortSignal): Promise<Started> {
    const { dtype, loadIn4bit } = trainedBase(model.trained.manifest);
    const { baseModel } = model.trained.manifest;
    const name = JSON.stringify([baseModel, dtype, loadIn4bit]);
    const over = AbortSignal.any([signal, this.#over.signal]);
    over.throwIfAborted();
    while (!this.#makePlace(name)) {
      tell(`waiting for one of the ${OWN_ENGINES} engines, which all answer other chats or replays`);
      await once(this.#places, 'free', { signal: over });
    }
    const known = this.#own.get(name);
    if (known !== undefined) {
      // The one that was used last is the last to go.
      this.#own.delete(name);
      this.#own.set(name, known);
      if (!known.isReady) tell(`waiting for the engine for ${baseModel}, which starts`);
      known.listeners.add(tell);
      return this.#use(known, signal);
    }
    tell(`starting an engine for ${baseModel}; it stays until temper ui ends`);
    const started = this.#startNew(model, config, () => this.#forget(name, started));
    started.listeners.add(tell);
    this.#own.set(name, started);
    return this.#use(started, signal);
  }

  #use(started: Started, signal: AbortSignal): Started {
    started.users += 1;
    const leave = (): void => {
      started.users -= 1;
      this.#places.emit('free');
    };
    signal.addEventListener('abort', leave, { once: true });
    return started;
  }

  #startNew({ trained }: EngineModel, config: TemperConfig, onEnd: () => void): Started {
    const { project, env } = this.#options;
    const listeners = new Set<Tell>();
    const tellAll = (line: string): void => {
      for (const listener of listeners) listener(line);
    };
    const options = {
      project,
      env,
      signal: this.#over.signal,
      config,
      device: null,
      dtype: null,
      loadIn4bit: false,
      tell: tellAll,
      tellChoice: tellAll,
    };
    const engine = this.#startEngine(options, trained);
    // One that ended is started again by the next request.
    void engine.then(({ ended }) => ended).then(onEnd, onEnd);
    return { engine, listeners, isReady: false, users: 0 };
  }

  #forget(name: string, started: Started): void {
    if (this.#own.get(name) === started) this.#own.delete(name);
    this.#places.emit('free');
  }

  /** Closes the engine that was used longest ago of those that nobody asks; false if all are asked. */
  #makePlace(name: string): boolean {
    if (this.#own.has(name) || this.#own.size < OWN_ENGINES) return true;
    const [idle] = [...this.#own].find(([, { users }]) => users === 0) ?? [];
    if (idle !== undefined) this.#close(idle);
    return idle !== undefined;
  }

  #close(name: string): void {
    const { engine } = this.#own.get(name)!;
    this.#own.delete(name);
    const closing: Promise<void> = engine
      .then((started) => started.close())
      .catch(() => undefined)
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

/** The work goes on: another chat may wait for it, too. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new TemperError('EngineFailed', 'the request was given up'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
