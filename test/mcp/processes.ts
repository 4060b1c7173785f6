/** Processes that a server of these tests forked: `sleep` for a time that no other run of the tests has. */
import { commandLines } from '../processes.ts';

export const FORKED = `4011.${process.pid}`;

/** Those that are alive. */
export function forked(): string[] {
  return commandLines().filter((line) => line.trim() === `sleep ${FORKED}`);
}
