/** How long, in all, an attempt stood still because its engine did not answer; that time is not the agent's. */
export class OutageClock {
  /** Why calls wait now; null where none does. */
  reason: string | null = null;
  private waiting = 0;
  private since = 0;
  private totalMs = 0;

  began(reason: string): void {
    if (this.waiting === 0) this.since = Date.now();
    this.waiting += 1;
    this.reason = reason;
  }

  ended(): void {
    this.waiting -= 1;
    if (this.waiting > 0) return;
    this.totalMs += Date.now() - this.since;
    this.reason = null;
  }

  get elapsedMs(): number {
    return this.totalMs + (this.waiting > 0 ? Date.now() - this.since : 0);
  }
}
