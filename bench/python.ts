/** Runs the bench's Python scripts in the GPU worker's environment. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { openRealModel } from '../test/real-model/real-model.ts';
import { GPU_WORKER_FOLDER } from '../workers/project/folders.ts';

/** How PyTorch's threads wait, as the GPU worker has it on Linux (`limit_spinning`). */
export const OWN_ENVIRONMENT = { OMP_WAIT_POLICY: 'ACTIVE', GOMP_SPINCOUNT: '3000' };

export function startScript(
  python: string,
  script: string,
  args: readonly string[],
  { stdin = 'ignore', env = {} }: { stdin?: 'ignore' | 'pipe'; env?: Record<string, string> } = {},
): ChildProcess {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const own = { PYTHONPATH: GPU_WORKER_FOLDER, TOKENIZERS_PARALLELISM: 'false' };
  return spawn(python, [file, ...args], { env: { ...process.env, ...own, ...env }, stdio: [stdin, 'pipe', 'pipe'] });
}

/** Returns the script's output; a failure ends the bench. */
export async function runScript(
  python: string,
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = startScript(python, script, args, { env });
  let output = '';
  let complaints = '';
  child.stdout?.on('data', (text: Buffer) => (output += String(text)));
  child.stderr?.on('data', (text: Buffer) => (complaints += String(text)));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`bench/${script} ${args.join(' ')} ended with ${code}:\n${complaints.slice(-3000)}`);
  return output;
}

export async function runJsonScript<T>(
  python: string,
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<T> {
  const output = await runScript(python, script, args, env);
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as T;
}

/** Shapes that make_model.py knows. */
const RANDOM = /^random-(50m|pocket)$/;

/** The folder of a model: the pocket model, SmolLM2, one that is made below `folder`, or one that is there. */
export async function readModel(python: string, name: string, folder: string): Promise<string> {
  if (name === 'pocket') return join(GPU_WORKER_FOLDER, 'temper_gpu', 'pocket', 'model');
  if (name === 'smollm2') return openRealModel(() => Promise.resolve(python));
  const shape = RANDOM.exec(name)?.[1];
  if (shape === undefined) return name;
  const made = join(folder, name);
  console.log((await runScript(python, 'make_model.py', [shape, made])).trim());
  return made;
}
