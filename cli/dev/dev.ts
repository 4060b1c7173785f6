import { aborted } from 'node:util';
import { openLocalStack } from '../../workers/local-stack/client.ts';
import type { CommandContext } from '../command-line/command.ts';
import { engineOverrides } from '../command-line/engine-flags.ts';
import { EXIT } from '../command-line/errors.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import { loadAgent } from '../planning/load-agent.ts';
import type { devCommand } from './command.ts';

export async function dev(context: CommandContext<typeof devCommand>): Promise<number> {
  const { flags, project, cwd, env, output, signal } = context;
  const agentFile = flags.agent === null ? null : (await loadAgent(flags.agent, cwd)).path;
  const stack = await openLocalStack({
    project,
    agentFile,
    models: {},
    onEvent: createEventPrinter((line) => output.line(line)),
    uiPort: flags['ui-port'],
    overrides: engineOverrides(flags),
    enginePort: flags['engine-port'],
    signal,
    env,
  });
  output.line(
    stack.adopted
      ? 'joined the running local stack; Ctrl-C leaves it'
      : 'the local stack is running; Ctrl-C stops it, unless another command is using it',
  );
  output.line(`Temporal   ${stack.temporalAddress} (namespace ${stack.namespace})`);
  if (stack.uiUrl !== null) output.line(`UI         ${stack.uiUrl}`);
  output.line(`engine     ${stack.engineUrl}/v1 (key in .temper/engine.key)`);
  output.line(`store      ${stack.storeUri}`);
  // A pending promise does not keep Node alive, the stack's socket does.
  await aborted(signal, signal);
  const { others } = await stack.close();
  output.line(others === 0 ? 'the local stack has ended' : 'left the local stack: another command keeps it running');
  return EXIT.ok;
}
