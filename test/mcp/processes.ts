/** Processes that a server of these tests forked: `sleep` for a time that no other run of the tests has. */
import { readdirSync, readFileSync } from 'node:fs';

export const FORKED = `4011.${process.pid}`;

/** Those that are alive. */
export function forked(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line.trim() === `sleep ${FORKED}`);
}
