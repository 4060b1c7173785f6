/** Which Temporal server and which engine a project has now, without starting one. */
import { configuredTarget, type TemporalTarget } from '../connection/target.ts';
import { projectFolders } from '../project/folders.ts';
import { isAlive } from '../process/processes.ts';
import { readStackFile } from './protocol/stack-file.ts';
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import type { TemperConfig } from '../config/config.ts';
import { engineKeyOf } from './daemon/engine-key.ts';

/** The configured server, or that of the project's local stack while it runs; null: neither. */
export function runningTarget(project: string, env: NodeJS.ProcessEnv): TemporalTarget | null {
  const configured = configuredTarget(env);
  if (configured !== null) return configured;
  const stack = readStackFile(projectFolders(project).stackFile);
  if (stack === null || stack.ports === null || !isAlive({ ...stack, name: 'daemon' })) return null;
  return { address: `127.0.0.1:${stack.ports.temporal}`, namespace: 'default' };
}

/** The configured engine, or that of the project's local stack while it runs; null: neither. */
export function runningEngine(project: string, { engine }: Pick<TemperConfig, 'engine'>): EngineAddress | null {
  const folders = projectFolders(project);
  if (engine.url !== null)
    return { url: engine.url, key: engineKeyOf(engine, folders), keyVariable: engine.keyVariable };
  const stack = readStackFile(folders.stackFile);
  if (stack === null || stack.ports === null || !isAlive({ ...stack, name: 'daemon' })) return null;
  return { url: `http://127.0.0.1:${stack.ports.engine}`, key: engineKeyOf(engine, folders) };
}
