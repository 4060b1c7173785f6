import { setTimeout as sleep } from 'node:timers/promises';

import { badConfig } from '../../core/contract/failures.ts';
import { checkCount, checkOptions } from '../options/check-options.ts';
import { playingAttempt } from './playing-attempt.ts';

export interface RetryOptions {
  maxAttempts?: number;
  delayMs?: number;
  backoffFactor?: number;
  /** False for what is not worth trying again; absent: everything is. */
  shouldRetry?: (error: unknown) => boolean;
  onRetry?: (error: unknown, attempt: number) => void;
}

/**
 * The same function, tried again where it throws. In an attempt that has ended (its time, its calls, an outage) nothing
 * is tried again: no call of it would be answered.
 */
export function retry<A extends unknown[], T>(
  fn: (...args: A) => T | Promise<T>,
  options: RetryOptions = {},
): (...args: A) => Promise<T> {
  checkRetry(options);
  const { maxAttempts = 3, delayMs = 250, backoffFactor = 2, shouldRetry = () => true, onRetry } = options;
  return async (...args) => {
    for (let attempt = 1, waitMs = delayMs; ; attempt++, waitMs *= backoffFactor) {
      try {
        return await fn(...args);
      } catch (error) {
        const isOver = playingAttempt()?.signal.aborted === true;
        if (isOver || attempt >= maxAttempts || !shouldRetry(error)) throw error;
        onRetry?.(error, attempt);
        await sleep(waitMs);
      }
    }
  };
}

function checkRetry(options: RetryOptions): void {
  const { maxAttempts, delayMs, backoffFactor } = checkOptions('retry', options);
  checkCount('maxAttempts', maxAttempts, { least: 1, example: 3 });
  for (const [name, value] of Object.entries({ delayMs, backoffFactor }))
    if (value !== undefined && !(Number.isFinite(value) && value >= 0))
      throw badConfig(`${name} of retry must be a number of at least 0, got ${value}; correct or remove it`);
}
