/** One resource from its setup to its end, and the lease that says so. */
import { setTimeout as sleep } from 'node:timers/promises';

import { TemperError } from '../../core/contract/failures.ts';
import type { Lease } from '../../store/records/groups/leases.ts';
import { shownError, endLease, keepFailure, unlessAborted, type LeaseLog } from './end-lease.ts';
import type { Resource, SetupContext } from './resource.ts';

/** A setup that was told to stop gets so long before teardown begins without it. */
const STOP_WITHIN_MS = 5000;

export interface SetupFrame extends Pick<SetupContext, 'resources' | 'signal'> {
  /** Absent for the scope `worker`. */
  scenario?: SetupContext['scenario'];
}

export class HeldResource {
  readonly lease: Lease;
  readonly #resource: Resource;
  readonly #log: LeaseLog;
  readonly #over = new AbortController();
  /** The setup, until it has really ended: it may go on after its deadline. */
  #running: Promise<void> | null = null;
  #data: unknown = null;
  #value: unknown;
  #ending: Promise<string | null> | null = null;

  constructor(resource: Resource, lease: Lease, log: LeaseLog) {
    this.#resource = resource;
    this.lease = lease;
    this.#log = log;
  }

  async setUp({ signal, ...frame }: SetupFrame): Promise<unknown> {
    // First: whatever happens to this process from here on, the resource is known.
    await this.#log.open(this.lease);
    const { id, resource: name } = this.lease;
    const { setupTimeoutMs } = this.#resource;
    const late = new Error(`setup may take setupTimeoutMs ${setupTimeoutMs} ms, it took longer`);
    const timer = setTimeout(() => this.#over.abort(late), setupTimeoutMs);
    const either = AbortSignal.any([signal, this.#over.signal]);
    const record = (data: unknown): Promise<void> => this.#record(data);
    try {
      return await unlessAborted(either, () => this.#begin({ ...frame, id, signal: either, record } as SetupContext));
    } catch (cause) {
      const rule = `the resource ${name} could not be set up (${shownError(cause)})`;
      throw new TemperError('ResourceFailed', `${rule}; mend what its setup needs, or its setup`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Null once it has ended; else why not: then it can be asked for again. Never rejects. */
  end(): Promise<string | null> {
    this.#ending ??= this.#end().finally(() => (this.#ending = null));
    return this.#ending;
  }

  #begin(context: SetupContext): Promise<unknown> {
    const { setup } = this.#resource;
    const making = (async () => setup(context))();
    const running = async (): Promise<void> => {
      this.#value = await making.catch(() => undefined);
      this.#running = null;
    };
    this.#running = running();
    return making;
  }

  async #record(data: unknown): Promise<void> {
    if (this.#over.signal.aborted) throw new Error('the lease is being ended: nothing can be recorded in it');
    await this.#log.record(this.lease, data);
    this.#data = data;
  }

  async #end(): Promise<string | null> {
    this.#over.abort(new Error('the resource is not needed any more'));
    const stopping = new AbortController();
    const late = sleep(STOP_WITHIN_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    await Promise.race([this.#running, late]);
    stopping.abort();
    // Setup may create something after teardown has looked for it: another teardown follows.
    const isRunning = this.#running !== null;
    if (isRunning) return keepFailure(this.#log, this.lease, 'setup has not ended, though it was told to stop');
    return endLease(this.#resource, { lease: this.lease, data: this.#data }, this.#log, this.#value);
  }
}
