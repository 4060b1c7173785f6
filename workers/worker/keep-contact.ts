/** Asks the Temporal server for an answer now and then: heartbeats are sent by the SDK, which does not tell whether they arrive. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { NativeConnection } from '@temporalio/worker';
import type { createContact } from '../../activities/contact.ts';
import { CONTACT_MS } from '../../core/wire-constants.ts';
import { isPassing } from '../connection/connection.ts';

export async function keepContact(
  connection: NativeConnection,
  contact: ReturnType<typeof createContact>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const askedAt = Date.now();
    const { workflowService } = connection;
    const asking = connection.withDeadline(askedAt + CONTACT_MS, () => workflowService.getSystemInfo({}));
    // A refusal is an answer; what is none shows as silence.
    const answered = asking.then(
      () => true,
      (error: unknown) => !isPassing(error),
    );
    // The SDK retries beyond the deadline: a late answer says nothing about the present.
    const late = sleep(CONTACT_MS, false, { ref: false });
    if (await Promise.race([answered, late])) contact.answered(askedAt);
    await sleep(CONTACT_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
