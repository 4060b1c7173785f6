/** Which engine a project has now, without starting one. */
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import type { TemperConfig } from '../config/config.ts';
import { projectFolders } from '../project/folders.ts';
import { isAlive } from '../process/processes.ts';
import { engineKeyOf } from './daemon/engine-key.ts';
import { readStackFile } from './protocol/stack-file.ts';

/** The configured engine, or that of the project's local stack while it runs; null: neither. */
export function runningEngine(project: string, { engine }: Pick<TemperConfig, 'engine'>): EngineAddress | null {
  const folders = projectFolders(project);
  if (engine.url !== null)
    return { url: engine.url, key: engineKeyOf(engine, folders), keyVariable: engine.keyVariable };
  const stack = readStackFile(folders.stackFile);
  if (stack === null || stack.ports === null || !isAlive({ ...stack, name: 'daemon' })) return null;
  return { url: `http://127.0.0.1:${stack.ports.engine}`, key: engineKeyOf(engine, folders) };
}
