/** Holds a local stack as a command line does, until stdin closes; prints what it is, and clears up behind it. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLocalStack } from '../workers/local-stack/client.ts';
import type { LocalStackOptions } from '../workers/local-stack/options.ts';
import { readStackFile } from '../workers/local-stack/protocol/stack-file.ts';
import { isAlive } from '../workers/process/processes.ts';

export interface HoldOptions extends Pick<LocalStackOptions, 'project' | 'agentFile' | 'commands'> {
  /** A disk that was mounted for the stack. */
  readonly unmount?: string | null;
  /** Folders that nobody else removes if whoever started this is killed. */
  readonly remove?: readonly string[];
}

const [POLL_MS, MOST_LOOKS] = [100, 600];

// A terminal tells everybody; whoever started this ends it once nothing needs the stack.
process.on('SIGINT', () => undefined);
const { unmount, remove = [], ...options } = JSON.parse(process.argv[2] ?? '{}') as HoldOptions;
const stack = await openLocalStack({ ...options, models: {}, onEvent: () => undefined });
process.stdout.write(`${JSON.stringify(stack)}\n`);
await Promise.race([once(process.stdin.resume(), 'close'), once(process, 'SIGTERM')]);
await stack.close();
// A command that is being ended may hold it for a moment longer.
const mostLooks = unmount || remove.length > 0 ? MOST_LOOKS : 0;
for (let looks = 0; looks < mostLooks && isThere(); looks++) await sleep(POLL_MS);
if (unmount) spawnSync('umount', [unmount]);
for (const folder of remove) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
process.exit(0);

function isThere(): boolean {
  const daemon = readStackFile(join(options.project, '.temper', 'stack.json'));
  return daemon !== null && isAlive({ ...daemon, name: 'daemon' });
}
