/** `event` is absent in formats whose events say their type in the data alone. */
export function writeEvent(data: object | string, event?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`;
}

/** A comment: clients skip it, and their timers begin anew. */
export const KEEP_ALIVE = ': waiting\n\n';
