/** Which Temporal server a project has now. */
import { configuredTarget, type TemporalTarget } from '../connection/target.ts';
import { projectFolders } from '../project/folders.ts';
import { isAlive } from '../process/processes.ts';
import { readStackFile } from './protocol/stack-file.ts';

/** The configured server, or that of the project's local stack while it runs; null: neither. */
export function runningTarget(project: string, env: NodeJS.ProcessEnv): TemporalTarget | null {
  const configured = configuredTarget(env);
  if (configured !== null) return configured;
  const stack = readStackFile(projectFolders(project).stackFile);
  if (stack === null || stack.ports === null || !isAlive({ ...stack, name: 'daemon' })) return null;
  return { address: `127.0.0.1:${stack.ports.temporal}`, namespace: 'default' };
}
