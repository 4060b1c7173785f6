/** Lines of `temper doctor` about GPUs, by a stand-in of NVIDIA's tool. */
import { beforeEach, expect, it } from 'vitest';
import { gpuChecks, readGpus } from '../../../workers/doctor/doctor-gpus.ts';
import { fakePrograms, type FakePrograms } from '../install/fake-programs.ts';

const H200 = '0, GPU-a, NVIDIA H200, 580.159.03, 9.0, 143771, 131072';
const V100 = '1, GPU-b, Tesla V100-SXM2-16GB, 550.54.15, 7.0, 16384, [N/A]';

let programs: FakePrograms;
beforeEach(() => {
  programs = fakePrograms();
});

function addGpus(gpus: readonly string[], processes: readonly string[] = []): void {
  const answers = JSON.stringify([gpus.join('\n'), processes.join('\n')]);
  programs.add('nvidia-smi', `console.log(${answers}[args[0].startsWith('--query-gpu=') ? 0 : 1]);`);
}

const EMBEDDED = { kind: 'embedded', reason: 'because' } as const;
const checks = async (decided: Parameters<typeof gpuChecks>[1] = EMBEDDED) =>
  gpuChecks(await readGpus(programs.env), decided);

it('driver, memory and its holders, and which engine samples', async () => {
  addGpus([H200], ['GPU-a, 4242, /opt/venv/bin/python, 12698', 'GPU-a, 7, other, [N/A]', 'GPU-z, 1, x, 1']);
  const reason = 'because it samples on a GPU (NVIDIA H200) and vLLM is installed';
  expect(await checks({ kind: 'vllm', reason })).toEqual([
    {
      name: 'GPU driver',
      ok: true,
      detail: '580.159.03 (PyTorch for CUDA 13 needs 580 or newer)',
      remedy: null,
    },
    {
      name: 'GPU 0',
      ok: true,
      detail:
        'NVIDIA H200, compute capability 9.0, 128.0 of 140.4 GiB free, held by python (pid 4242, 12.4 GiB), other (pid 7)',
      remedy: null,
    },
    {
      name: 'sampling',
      ok: true,
      detail: `vllm, ${reason}; on one H200 the embedded engine sampled 491 tokens/s (shapes of Qwen2.5-7B, 64 requests at once); vLLM was not measured`,
      remedy: null,
    },
  ]);
});

it('an old driver and an old GPU fail, with what to do', async () => {
  addGpus([V100]);
  expect(await checks()).toMatchObject([
    {
      ok: false,
      detail: '550.54.15, but PyTorch for CUDA 13 needs 580 or newer',
      remedy: 'update the driver, or set engine.device to cpu',
    },
    {
      name: 'GPU 1',
      ok: false,
      remedy: 'CUDA 13 needs 7.5 or more: use another GPU, or set engine.device to cpu',
    },
    { ok: true },
  ]);
});

it('without the tool nothing is said, and a broken one fails nothing', async () => {
  expect(await checks()).toEqual([]);
  programs.add('nvidia-smi', `console.log('NVIDIA-SMI has failed'); process.exit(9);`);
  expect(await checks()).toEqual([
    {
      name: 'GPU driver',
      ok: null,
      detail: 'nvidia-smi ended with code 9: NVIDIA-SMI has failed',
      remedy: 'reload or install the NVIDIA driver if this machine has a GPU',
    },
  ]);
  addGpus(['NVIDIA H200']);
  expect(await checks()).toMatchObject([{ ok: null, detail: 'nvidia-smi answers in another form: NVIDIA H200' }]);
});

it.each([
  ['1', ['Tesla V100-SXM2-16GB']],
  ['1, 0', ['Tesla V100-SXM2-16GB', 'NVIDIA H200']],
  ['GPU-5f2a', ['NVIDIA H200']],
  // CUDA looks no further than the first name that means nothing.
  ['0,7,1', ['NVIDIA H200']],
  ['-1', []],
  ['', []],
])('with CUDA_VISIBLE_DEVICES=%s, a GPU worker sees %j', async (visible, expected) => {
  addGpus([H200, V100]);
  programs.env['CUDA_VISIBLE_DEVICES'] = visible;
  const { gpus, names } = await readGpus(programs.env);
  expect([gpus.length, names]).toEqual([2, expected]);
});
