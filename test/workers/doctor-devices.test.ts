/** What `temper doctor` says of the devices that train. */
import { availableParallelism } from 'node:os';
import { afterEach, expect, it } from 'vitest';
import { devicesState } from '../../workers/doctor/doctor-devices.ts';
import { fakePrograms, type FakePrograms } from './install/fake-programs.ts';

let programs: FakePrograms | null = null;
afterEach(() => programs?.remove());

function hostWith(gpus: number, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  programs = fakePrograms();
  const lines = Array.from({ length: gpus }, () => 'NVIDIA H200').join('\\n');
  if (gpus > 0) programs.add('nvidia-smi', `console.log('${lines}');`);
  return { ...programs.env, ...env };
}

const cores = availableParallelism();

it('counts GPUs and cores, and says how many train', async () => {
  expect(await devicesState({ device: 'auto', devices: 2 }, hostWith(4))).toBe(
    `4 GPUs (NVIDIA H200), ${cores} CPU cores; 2 on cuda:0 (engine.devices)`,
  );
  expect(await devicesState({ device: 'auto', devices: 1 }, hostWith(0))).toBe(
    `0 GPUs, ${cores} CPU cores; 1 on the CPU (engine.devices)`,
  );
  expect(await devicesState({ device: 'cpu', devices: 1 }, hostWith(1))).toContain('1 GPU (NVIDIA H200)');
});

it.each([
  ['the GPUs from the first one on', 'cuda:3', 2, {}, '2 on cuda:3; set it to at most 1'],
  ['the GPUs that are visible', 'cuda', 3, { CUDA_VISIBLE_DEVICES: '0,2' }, 'set it to at most 2'],
  ['the cores', 'cpu', cores + 1, {}, `${cores + 1} on the CPU; set it to at most ${cores}`],
])('refuses more than %s', async (_, device, devices, env, complaint) => {
  await expect(devicesState({ device, devices }, hostWith(4, env))).rejects.toThrow(complaint);
});
