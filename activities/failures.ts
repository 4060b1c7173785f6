/** The one place where a typed failure becomes Temporal's. */
import { ApplicationFailure } from '@temporalio/common';

import { FAILURES, type TemperError } from '../core/failures.ts';

/** Temporal keeps 4 KiB of a failure's text. */
const MAX_MESSAGE = 2000;
/** A provider that says "tomorrow" is asked again within the hour all the same. */
const LONGEST_RETRY_MS = 3_600_000;

export function toApplicationFailure(error: TemperError): ApplicationFailure {
  return ApplicationFailure.create({
    message: error.message.slice(0, MAX_MESSAGE),
    type: error.type,
    nonRetryable: !error.retryable,
    // Asked to stay away, the next try does; an agent file may bring an older copy of the class, without the field.
    ...(error.retryAfterMs ? { nextRetryDelay: Math.min(error.retryAfterMs, LONGEST_RETRY_MS) } : {}),
    ...(error.cause instanceof Error ? { cause: error.cause } : {}),
  });
}

/** By name, not by class: an agent file may load another copy of it. */
export function isTemperError(error: unknown): error is TemperError {
  return error instanceof Error && error.name === 'TemperError' && 'type' in error && String(error.type) in FAILURES;
}
