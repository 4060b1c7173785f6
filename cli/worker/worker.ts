import { runWorker } from '../../workers/worker/worker.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { loadAgent } from '../planning/load-agent.ts';
import type { workerCommand } from './command.ts';

export async function worker(context: CommandContext<typeof workerCommand>): Promise<number> {
  const { flags, project, cwd, env, signal } = context;
  const agents: string[] = [];
  for (const file of flags.agent) agents.push((await loadAgent(file, cwd)).path);
  await runWorker({ project, agents, signal, env });
  return EXIT.ok;
}
