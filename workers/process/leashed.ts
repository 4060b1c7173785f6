/** Ties a program's life to its parent's. */
import { spawnSync } from 'node:child_process';

let available: boolean | null = null;

/** Linux alone can have the kernel end a child with its parent, whatever ended the parent; elsewhere stdin and `stack.json` do. */
function canTie(): boolean {
  available ??=
    process.platform === 'linux' &&
    spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true'], { stdio: 'ignore', timeout: 5000 }).status === 0;
  return available;
}

/** The same command line, ended by SIGKILL when the process that starts it dies. The pid stays the program's own. */
export function leashed(command: string, args: readonly string[]): [string, string[]] {
  return canTie() ? ['setpriv', ['--pdeathsig', 'KILL', '--', command, ...args]] : [command, [...args]];
}
