/**
 * A process that holds leases. It renews its record in the store; others take it for dead once they have watched the
 * record for `WATCH_MS` without a change, and end what it held. A process that could not renew for so long knows that.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

import type { Leases } from '../../store/records/groups/leases.ts';

/** Longer than a heartbeat timeout: whoever is dead here has lost its activities, too. */
export const WATCH_MS = 15_000;
const RENEW_MS = 4000;

/** By both clocks: somebody may set the one back, and the other stands still while the machine is suspended. */
const now = () => ({ wallMs: Date.now(), steadyMs: performance.now() });
const elapsedMs = ({ wallMs, steadyMs }: ReturnType<typeof now>): number =>
  // oxlint-disable-next-line temper/durations -- the longer of both counts
  Math.max(Date.now() - wallMs, performance.now() - steadyMs);

export class LeaseHolder {
  readonly id = randomBytes(8).toString('hex');
  readonly #leases: Leases;
  readonly #startedAt = new Date().toISOString();
  #renewals = 0;
  #renewedAt = now();
  #renewing: Promise<void> | null = null;
  #isEnded = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  async begin(): Promise<void> {
    await this.renew();
    this.#timer = setInterval(() => {
      // One that fails is seen by its age.
      this.#renewing ??= this.renew()
        .catch(() => undefined)
        .finally(() => (this.#renewing = null));
    }, RENEW_MS).unref();
  }

  /** False where others took this process for dead, and may have ended what it holds. */
  async isHolding(): Promise<boolean> {
    if (this.#wasSilent) await this.renew();
    return !this.#isEnded;
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
    await this.#leases.removeHolder(this.id);
  }

  get #wasSilent(): boolean {
    return elapsedMs(this.#renewedAt) > WATCH_MS;
  }

  async renew(): Promise<void> {
    // A missing record: it was taken for dead, and has been forgotten since.
    if (this.#wasSilent && (await this.#leases.holder(this.id)).renewal === null) this.#isEnded = true;
    if (this.#isEnded) return;
    const askedAt = now();
    const facts = { startedAt: this.#startedAt, host: hostname(), pid: process.pid, renewals: (this.#renewals += 1) };
    await this.#leases.renewHolder(this.id, facts);
    // Read last: others say that it counts as dead before they end anything, and may have forgotten it after a long write.
    const { isEnded } = await this.#leases.holder(this.id);
    this.#isEnded = isEnded || elapsedMs(askedAt) > WATCH_MS;
    this.#renewedAt = askedAt;
  }
}
