/** Trains on this machine: the local stack, opened as `temper train` opens it, and held by the script. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Backend, OpenBackend } from '../../sdk/loop/backend.ts';
import type { TrainableModel } from '../../sdk/loop/trainable-model.ts';
import { anything, optional, takes, whole } from '../../sdk/options/options.ts';
import type { Store } from '../../store/store.ts';
import type { Held, LocalBackendOptions } from './hold-stack.ts';

export type { LocalBackendOptions } from './hold-stack.ts';

export interface ForkOptions {
  fromModel: string;
  /** Default: the project of the model. */
  fromProject?: string;
  /** Uses the newest checkpoint up to this step; default: the newest one. */
  notAfterStep?: number;
}

const checkOptions = takes<LocalBackendOptions>('LocalBackend', {
  ...optional('folder', 'onEvent', 'env'),
});

const checkFork = takes<ForkOptions>('backend.forkCheckpoint', {
  fromModel: anything,
  fromProject: anything.optional(),
  notAfterStep: whole(0, 'pass 40').optional(),
});

export class LocalBackend implements Backend {
  readonly #options: LocalBackendOptions;
  readonly #held = new Map<string, Promise<Held>>();
  readonly #tasks: (() => Promise<void>)[] = [];
  #store: Promise<Store> | null = null;

  constructor(options: LocalBackendOptions = {}) {
    this.#options = checkOptions(options);
  }

  /** Starts the local stack, or joins the running one. A second call returns the same backend. */
  async open(baseModel: string, run: string): Promise<OpenBackend> {
    const { readRun } = await import('../../store/records/runs/run-reader.ts');
    const recorded = (await readRun(await this.#openStore(), run))?.file.config.baseModel ?? null;
    const key = JSON.stringify([baseModel, recorded]);
    const held = this.#held.get(key) ?? this.#hold(baseModel, recorded);
    this.#held.set(key, held);
    held.catch(() => this.#held.delete(key));
    return (await held).opened;
  }

  /** Starts the model from another model's adapter and optimizer state. Call it before `model.register`. */
  async forkCheckpoint(model: TrainableModel, options: ForkOptions): Promise<void> {
    const { fromModel, fromProject, notAfterStep } = checkFork(options);
    const { findNewestCheckpoint } = await import('../../store/records/runs/find-checkpoint.ts');
    const run = `${fromProject ?? model.project}.${fromModel}`;
    const store = await this.#openStore();
    const found = await findNewestCheckpoint(store, run, notAfterStep ?? Infinity);
    if (found === null)
      throw badConfig(
        `${run} must have a committed step${notAfterStep === undefined ? '' : ` up to ${notAfterStep}`} to be forked, but the store ${store.uri} has none; see temper runs`,
      );
    model.beginFrom(found);
  }

  /** Leaves the local stack, which stops unless another command or script uses it. */
  async close(): Promise<void> {
    for (const task of this.#tasks.splice(0)) await task();
    const all = await Promise.allSettled(this.#held.values());
    this.#held.clear();
    for (const each of all) if (each.status === 'fulfilled') await each.value.close();
    const store = await this.#store;
    this.#store = null;
    await store?.close();
  }

  #openStore(): Promise<Store> {
    this.#store ??= loadStack().then(({ openStoreOf }) => openStoreOf(this.#options));
    return this.#store;
  }

  async #hold(baseModel: string, recorded: string | null): Promise<Held> {
    const { holdStack } = await loadStack();
    const atClose = (task: () => Promise<void>) => void this.#tasks.push(task);
    return holdStack({ baseModel, recorded }, this.#options, { store: await this.#openStore(), atClose });
  }
}

/** Agent files import this module too, and need no local stack and no Temporal client. */
const loadStack = () => import('./hold-stack.ts');
