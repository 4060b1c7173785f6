/** Holds a local stack as a command line does, until stdin closes. */
import { once } from 'node:events';
import { openLocalStack } from '../../../../workers/local-stack/client.ts';
import type { StackCommands } from '../../../../workers/local-stack/options.ts';

const [project = '', commands = '{}'] = process.argv.slice(2);
const stack = await openLocalStack({
  project,
  agentFile: null,
  models: {},
  commands: JSON.parse(commands) as StackCommands,
  onEvent: () => undefined,
});
process.stdout.write(`${JSON.stringify(stack)}\n`);
await once(process.stdin.resume(), 'close');
await stack.close();
process.exit(0);
