import { resolve } from 'node:path';
import type { Command } from '../command-line/command.ts';
import { stringFlag } from '../command-line/command.ts';
import { ENGINE_OPTIONS, engineFlags } from '../command-line/engine-flags.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';

export const dev: Command = {
  name: 'dev',
  summary: 'run the local stack in the foreground: Temporal server and UI, workers, GPU worker',
  usage: 'dev [--agent FILE] [--device NAME] [--dtype NAME] [--ui-port N] [--engine-port N]',
  details: [
    'Runs until Ctrl-C, or joins a local stack that is already running. The stack stops with the last command using it.',
  ],
  positionals: [],
  options: {
    agent: { type: 'string', placeholder: 'FILE', description: 'also play this agent, so that its runs continue' },
    ...ENGINE_OPTIONS,
    'ui-port': {
      type: 'string',
      placeholder: 'N',
      description: "port of Temporal's UI; default: a free one, remembered",
    },
    'engine-port': {
      type: 'string',
      placeholder: 'N',
      description: 'port of the engine; default: a free one, remembered',
    },
  },
  async run({ flags, project, cwd, env, output, signal }) {
    const { openLocalStack } = await import('../../workers/local-stack/client.ts');
    const { loadAgent } = await import('../train/load-agent.ts');
    const { createEventPrinter } = await import('../terminal/stack-events.ts');
    const agent = stringFlag(flags, 'agent');
    if (agent !== null) await loadAgent(agent, cwd);
    const stack = await openLocalStack({
      project,
      agentFile: agent === null ? null : resolve(cwd, agent),
      models: {},
      onEvent: createEventPrinter((line) => output.line(line)),
      uiPort: portFlag('ui-port', stringFlag(flags, 'ui-port')),
      ...engineFlags(flags),
      enginePort: portFlag('engine-port', stringFlag(flags, 'engine-port')),
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
    await aborted(signal);
    const { others } = await stack.close();
    output.line(others === 0 ? 'the local stack has ended' : 'left the local stack: another command keeps it running');
    return EXIT.ok;
  },
};

function portFlag(name: string, text: string | null): number | null {
  if (text === null) return null;
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new UsageError(`--${name} must be a port from 1 to 65535, got ${JSON.stringify(text)}; pass a free one`);
}

/** A pending promise does not keep Node alive, the stack's socket does. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((end) => {
    if (signal.aborted) end();
    else signal.addEventListener('abort', () => end(), { once: true });
  });
}
