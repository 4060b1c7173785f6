/** TRL beside the packages of the GPU worker and its tests, which bring PyTorch, transformers and PEFT for both. */
import { delimiter, join } from 'node:path';
import { installPackages } from '../../test/run/packages.ts';
import { GPU_WORKER_FOLDER } from '../../workers/project/folders.ts';

/** Environment of its scripts; installs it if missing. */
export async function openTrl(python: string): Promise<Record<string, string>> {
  const lock = join(import.meta.dirname, 'requirements.lock');
  const packages = await installPackages(python, { cache: 'bench', lock, what: 'installing TRL' });
  const bench = join(import.meta.dirname, '..');
  // It warns of each part that is experimental, and asks hubs for what is here.
  const quiet = { TRL_EXPERIMENTAL_SILENCE: '1', HF_HUB_OFFLINE: '1' };
  return { PYTHONPATH: [bench, GPU_WORKER_FOLDER, packages].join(delimiter), ...quiet };
}
