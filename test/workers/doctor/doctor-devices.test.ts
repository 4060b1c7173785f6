/** Lines of `temper doctor` about the devices that train. */
import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';
import { devicesState } from '../../../workers/doctor/doctor.ts';
import { fakePrograms } from '../install/fake-programs.ts';

function hostWith(gpus: number, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const programs = fakePrograms();
  const lines = Array.from({ length: gpus }, () => 'NVIDIA H200').join('\\n');
  if (gpus > 0) programs.add('nvidia-smi', `console.log('${lines}');`);
  return { ...programs.env, ...env };
}

const cores = availableParallelism();
const engine = { kind: 'embedded', shardBaseModel: false } as const;

it('counts GPUs and cores, and says how many train', async () => {
  expect(await devicesState({ ...engine, device: 'auto', devices: 2 }, hostWith(4))).toBe(
    `4 GPUs (NVIDIA H200), ${cores} CPU cores; 2 of the GPUs from cuda:0 on (engine.devices)`,
  );
  expect(await devicesState({ ...engine, device: 'auto', devices: 1 }, hostWith(0))).toBe(
    `0 GPUs, ${cores} CPU cores; 1 of the CPU cores (engine.devices)`,
  );
  expect(await devicesState({ ...engine, device: 'cpu', devices: 1 }, hostWith(1))).toContain('1 GPU (NVIDIA H200)');
});

it.each([
  [
    'the GPUs from the first one on',
    'cuda:3',
    2,
    {},
    'must be at most 1, the number of GPUs from cuda:3 on of this host, got 2; pass --devices 1',
  ],
  [
    'the GPUs that are visible',
    'cuda',
    3,
    { CUDA_VISIBLE_DEVICES: '0,2' },
    'must be at most 2, the number of GPUs from cuda:0 on of this host, got 3',
  ],
  [
    'the cores',
    'cpu',
    cores + 1,
    {},
    `must be at most ${cores}, the number of CPU cores of this host, got ${cores + 1}; pass --devices ${cores}`,
  ],
])('refuses more than %s', async (_, device, devices, env, complaint) => {
  await expect(devicesState({ ...engine, device, devices }, hostWith(4, env))).rejects.toThrow(complaint);
});

it('says that devices hold parts of the base model, and refuses parts that would save nothing', async () => {
  const parts = { ...engine, shardBaseModel: true, devices: 2 };
  const flag = '--shard-base-model (engine.shardBaseModel in temporal.config.ts) must come with ';
  expect(await devicesState({ ...parts, kind: 'vllm', device: 'cuda' }, hostWith(4))).toContain(
    '2 of the GPUs from cuda:0 on (engine.devices), each with a part of the base model (engine.shardBaseModel)',
  );
  await expect(devicesState({ ...parts, device: 'auto' }, hostWith(4))).rejects.toThrow(
    `${flag}--engine vllm on GPUs, got embedded`,
  );
  await expect(devicesState({ ...parts, device: 'cpu', devices: 1 }, hostWith(0))).rejects.toThrow(
    `${flag}several --devices, got 1`,
  );
});
