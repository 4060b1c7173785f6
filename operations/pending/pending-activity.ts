/** An activity that a server has not seen the end of: what it waits for, since when, and why. */
export interface PendingActivity {
  readonly activity: string;
  readonly attempt: number;
  readonly queue: string | null;
  /** Workers that poll its queue; null if it does not wait for one, or if the server did not say. */
  readonly pollers: number | null;
  readonly lastFailure: string | null;
  /** ISO time at which a worker took it, or at which it started to wait for one. */
  readonly since: string | null;
  readonly nextTryAt: string | null;
  /** Reason for the wait, constant while the wait lasts; null while it runs normally. */
  readonly reason: string | null;
  /** Full description with times. */
  readonly text: string;
}
