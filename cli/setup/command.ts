import { defineCommand } from '../command-line/command.ts';

export const setupCommand = defineCommand({
  name: 'setup',
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
      description: 'which build of vLLM: cpu or cuda; default: cuda if nvidia-smi finds a GPU, else cpu',
    },
  },
});
