import { resolve } from 'node:path';
import { runWorker } from '../../workers/worker/worker.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { loadAgent } from '../train/load-agent.ts';
import type { workerCommand } from './command.ts';

export async function worker(context: CommandContext<typeof workerCommand>): Promise<number> {
  const { flags, project, cwd, env, signal } = context;
  const files = flags.agent.map((file) => resolve(cwd, file));
  for (const file of files) await loadAgent(file, cwd);
  await runWorker({ project, agents: files, signal, env });
  return EXIT.ok;
}
