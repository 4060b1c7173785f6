import { aborted } from 'node:util';
import { defineCommand } from '../command-line/command.ts';
import { engineOverrides, ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { EXIT } from '../command-line/errors.ts';

export const devCommand = defineCommand({
  name: 'dev',
  group: 'Operate',
  summary: 'run the local stack in the foreground: Temporal server and UI, workers, GPU worker',
  details: [
    'Runs until Ctrl-C, or joins a local stack that is already running. The stack stops with the last command using it.',
  ],
  arguments: {},
  flags: {
    agent: { kind: 'text', placeholder: 'FILE', description: 'also play this agent, so that its runs continue' },
    ...ENGINE_FLAGS,
    'ui-port': {
      kind: 'port',
      placeholder: 'N',
      description: "port of Temporal's UI",
      default: 'a free one, remembered',
    },
    'engine-port': {
      kind: 'port',
      placeholder: 'N',
      description: 'port of the engine',
      default: 'a free one, remembered',
    },
    'metrics-port': {
      kind: 'port',
      placeholder: 'N',
      description: 'port of /metrics for Prometheus',
      default: 'metrics.port of temporal.config.ts',
    },
  },
  async run({ flags, project, cwd, env, output, signal }): Promise<number> {
    const { loadAgent } = await import('../planning/load-agent.ts');
    const { createEventPrinter } = await import('../terminal/stack-events.ts');
    const { openLocalStack } = await import('../../workers/local-stack/client.ts');
    const agentFile = flags.agent === null ? null : (await loadAgent(flags.agent, cwd)).path;
    const stack = await openLocalStack({
      project,
      agentFile,
      models: {},
      onEvent: createEventPrinter((line) => output.line(line)),
      uiPort: flags['ui-port'],
      overrides: engineOverrides(flags),
      enginePort: flags['engine-port'],
      metricsPort: flags['metrics-port'],
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
    if (stack.metricsUrl !== null) output.line(`metrics    ${stack.metricsUrl} (the same key)`);
    output.line(`store      ${stack.storeUri}`);
    // A pending promise does not keep Node alive, but the stack's socket does.
    await aborted(signal, signal);
    const { others } = await stack.close();
    output.line(others === 0 ? 'the local stack has ended' : 'left the local stack: another command keeps it running');
    return EXIT.ok;
  },
});
