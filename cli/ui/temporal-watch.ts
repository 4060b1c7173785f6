/** Whether a Temporal server answers, asked from time to time: no view waits for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TemporalClient } from '../../workers/connection/connection.ts';
import { runningTarget } from '../../workers/local-stack/running-stack.ts';
import type { ProjectPlace } from '../../operations/operation.ts';
import type { PendingOf } from '../../operations/pending/read-pending.ts';

const EVERY_MS = 10_000;
const WITHIN_MS = 3000;

export class TemporalWatch {
  readonly #place: ProjectPlace;
  readonly #onChange: () => void;
  readonly #ended = new AbortController();
  #server: TemporalClient | null = null;
  #watching: Promise<void> | null = null;

  constructor(place: ProjectPlace, onChange: () => void) {
    this.#place = place;
    this.#onChange = onChange;
  }

  /** Null where none answers. */
  get server(): TemporalClient | null {
    return this.#server;
  }

  /** What a run waits for, by its pending activities; null where no server answers. */
  async readWait(of: PendingOf): Promise<string | null> {
    if (this.#server === null) return null;
    const { readPending } = await import('../../operations/pending/read-pending.ts');
    const { worstWait } = await import('../../operations/pending/under-way.ts');
    return worstWait(await readPending(this.#server, of, WITHIN_MS))?.text ?? null;
  }

  start(): void {
    this.#watching ??= this.#watch();
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#watching;
    await this.#server?.close();
    this.#server = null;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await this.#look();
      await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const before = this.#server;
    if (before !== null && (await answers(before))) return;
    this.#server = await connect(this.#place).catch(() => null);
    if (before !== null) await before.close().catch(() => undefined);
    if ((before === null) !== (this.#server === null)) this.#onChange();
  }
}

/** The client is loaded once there is a server: it takes some 20 MB. */
async function connect(place: ProjectPlace): Promise<TemporalClient | null> {
  if (runningTarget(place.project, place.env) === null) return null;
  const { tryServer } = await import('../../operations/server.ts');
  return tryServer(place, WITHIN_MS);
}

async function answers({ connection }: TemporalClient): Promise<boolean> {
  try {
    await connection.withDeadline(Date.now() + WITHIN_MS, () => connection.workflowService.getSystemInfo({}));
    return true;
  } catch {
    return false;
  }
}
