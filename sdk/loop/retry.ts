import { setTimeout as sleep } from 'node:timers/promises';

import { amount, optional, takes, whole } from '../options/options.ts';
import { playingAttempt } from './playing-attempt.ts';

export interface RetryOptions {
  maxAttempts?: number;
  delayMs?: number;
  backoffFactor?: number;
  /** False for what is not worth trying again; absent: everything is. */
  shouldRetry?: (error: unknown) => boolean;
  onRetry?: (error: unknown, attempt: number) => void;
}

const checkOptions = takes<RetryOptions>('retry', {
  maxAttempts: whole(1, 'pass 3').optional(),
  delayMs: amount('correct or remove it').optional(),
  backoffFactor: amount('correct or remove it').optional(),
  ...optional('shouldRetry', 'onRetry'),
});

/**
 * The same function, tried again where it throws. In an attempt that has ended (its time, its calls, an outage) nothing
 * is tried again: no call of it would be answered.
 */
export function retry<A extends unknown[], T>(
  fn: (...args: A) => T | Promise<T>,
  options: RetryOptions = {},
): (...args: A) => Promise<T> {
  checkOptions(options);
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
