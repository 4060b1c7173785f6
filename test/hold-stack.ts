/** Holds a local stack as a command line does, until stdin closes; prints what it is. */
import { once } from 'node:events';
import { openLocalStack } from '../workers/local-stack/client.ts';
import type { LocalStackOptions } from '../workers/local-stack/options.ts';

// A terminal tells everybody; whoever started this ends it once nothing needs the stack.
process.on('SIGINT', () => undefined);
const options = JSON.parse(process.argv[2] ?? '{}') as Pick<LocalStackOptions, 'project' | 'agentFile' | 'commands'>;
const stack = await openLocalStack({ ...options, models: {}, onEvent: () => undefined });
process.stdout.write(`${JSON.stringify(stack)}\n`);
await once(process.stdin.resume(), 'close');
await stack.close();
process.exit(0);
