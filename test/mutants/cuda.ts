/** Broken lines that only a GPU runs. */
import type { Mutant } from './mutant.ts';

const TRAINING = 'gpu-worker/temper_gpu/training';
const EMBEDDED = 'gpu-worker/temper_gpu/engine/embedded';
const ON_CUDA = 'gpu-worker/tests/cuda';

export const CUDA: readonly Mutant[] = [
  {
    name: 'a kept mask loses its heads',
    file: `${TRAINING}/tree_attention.py`,
    find: 'partial(_as_view, make, tensor.size(), tensor.stride())',
    replace: 'make',
    test: `${ON_CUDA}/test_trainer.py`,
  },
  {
    name: 'adapters of halves are computed beside their layers in float32',
    file: `${TRAINING}/lora_parameters.py`,
    find: 'return device.type == "cuda"',
    replace: 'return False',
    test: `${ON_CUDA}/test_trainer.py`,
  },
  {
    name: 'a GPU adds up the nucleus',
    file: `${EMBEDDED}/distribution.py`,
    find: '.values.cpu()',
    replace: '.values',
    test: `${ON_CUDA}/test_engine.py`,
  },
  {
    name: 'what a schema allows stays in main memory',
    file: `${EMBEDDED}/constraints.py`,
    find: 'torch.from_numpy(allowed_V).to(logits_V.device)',
    replace: 'torch.from_numpy(allowed_V)',
    test: `${ON_CUDA}/test_engine.py`,
  },
  {
    name: 'a GPU decodes in tiles',
    file: `${EMBEDDED}/forward.py`,
    find: 'if self.device.type in PAIRED_ON:',
    replace: 'if False:',
    test: `${ON_CUDA}/test_engine.py`,
  },
];
