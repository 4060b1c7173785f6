/** Broken lines that only a GPU runs. */
import { breaking, type Mutant } from './mutant.ts';

export const CUDA: readonly Mutant[] = [
  ...breaking('gpu-worker/temper_gpu/training/tree_attention.py', 'gpu-worker/tests/cuda/test_trainer.py', [
    ['a kept mask loses its heads', 'partial(_as_view, make, tensor.size(), tensor.stride())', 'make'],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/lora_layers.py', 'gpu-worker/tests/cuda/test_trainer.py', [
    ['adapters of halves are computed beside their layers in float32', 'return device.type == "cuda"', 'return False'],
  ]),
  ...breaking('gpu-worker/temper_gpu/engine/embedded/distribution.py', 'gpu-worker/tests/cuda/test_engine.py', [
    ['a GPU adds up the nucleus', '.values.cpu()', '.values'],
  ]),
  ...breaking('gpu-worker/temper_gpu/engine/embedded/constraints.py', 'gpu-worker/tests/cuda/test_engine.py', [
    [
      'what a schema allows stays in main memory',
      'torch.from_numpy(allowed_V).to(logits_V.device)',
      'torch.from_numpy(allowed_V)',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/engine/embedded/forward.py', 'gpu-worker/tests/cuda/test_engine.py', [
    ['a GPU decodes in tiles', 'if self.device.type in PAIRED_ON:', 'if False:'],
  ]),
];
