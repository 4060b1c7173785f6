import { cacheFolder } from '../../workers/project/folders.ts';
import { installVllm } from '../../workers/install/vllm-environment.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { setupCommand } from './command.ts';

export async function setup(context: CommandContext<typeof setupCommand>): Promise<number> {
  const { flags, env, output, signal } = context;
  const onEvent = createEventPrinter((line) => output.line(line));
  const { python, build } = await installVllm(flags.build, { env, cache: cacheFolder(env), signal, onEvent });
  output.line(`vLLM is installed (${build} build): ${python}`);
  output.line(
    build === 'cuda'
      ? 'on a GPU of this machine it samples by default; --engine embedded chooses the other engine'
      : "use it with --engine vllm, or engine: { kind: 'vllm' } in temporal.config.ts",
  );
  return EXIT.ok;
}
