import { defineCommand } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const setupCommand = defineCommand({
  name: 'setup',
  group: 'Operate',
  summary: 'install an engine that Temper does not bring along: vllm',
  details: [
    'Installs vLLM into an environment of its own in the cache (TEMPER_CACHE), from locked packages. Linux only.',
    'The CPU build takes about 5 GB of downloads where PyTorch has no CPU build, else 1 GB. For an AMD GPU, install',
    "vLLM's ROCm build yourself and set TEMPER_VLLM_PYTHON to its Python.",
  ],
  examples: ['temper setup vllm', 'temper setup vllm --build cuda'],
  arguments: { engine: { placeholder: 'ENGINE', choices: ['vllm'] } },
  flags: {
    build: {
      kind: 'choice',
      choices: ['cpu', 'cuda'],
      placeholder: 'NAME',
      description: 'which build of vLLM: cpu or cuda',
      default: 'cuda if nvidia-smi finds a GPU, else cpu',
    },
  },
  async run({ flags, env, output, signal }): Promise<number> {
    const { createEventPrinter } = await import('../terminal/stack-events.ts');
    const { cacheFolder } = await import('../../workers/project/folders.ts');
    const { installVllm } = await import('../../workers/install/vllm-environment.ts');
    const onEvent = createEventPrinter((line) => output.line(line));
    const { python, build } = await installVllm(flags.build, { env, cache: cacheFolder(env), signal, onEvent });
    output.line(`vLLM is installed (${build} build): ${python}`);
    output.line(
      build === 'cuda'
        ? 'on a GPU of this machine it samples by default; --engine embedded chooses the other engine'
        : "use it with --engine vllm, or engine: { kind: 'vllm' } in temporal.config.ts",
    );
    return EXIT.ok;
  },
});
