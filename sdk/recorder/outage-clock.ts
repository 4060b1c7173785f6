/** How long, in all, an attempt stood still because its engine did not answer; that time is not the agent's. */
export class OutageClock {
  /** Why calls wait now; null where none does. */
  reason: string | null = null;
  private waiting = 0;
  private since = 0;
  private endedAt = 0;
  private totalMs = 0;

  /** `since` is when the first try that came to nothing began. */
  began(reason: string, since: number): void {
    if (this.waiting === 0) this.since = Math.max(since, this.endedAt);
    this.waiting += 1;
    this.reason = reason;
  }

  ended(): void {
    this.waiting -= 1;
    if (this.waiting > 0) return;
    this.endedAt = Date.now();
    this.totalMs += this.endedAt - this.since;
    this.reason = null;
  }

  get elapsedMs(): number {
    return this.totalMs + (this.waiting > 0 ? Date.now() - this.since : 0);
  }
}
