/** Targets that a command names, or the project's. */
import { loadConfig } from '../../workers/config/config.ts';
import { namesOfTargets, settingsOfTarget } from '../../workers/config/targets.ts';
import { NONE, type CommandEnvironment } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';

/** Refuses names that no tracker has, before anything is started. */
export async function readTargets(
  asked: readonly string[],
  { project, env }: Pick<CommandEnvironment, 'project' | 'env'>,
): Promise<string[]> {
  const config = await loadConfig(project, env);
  if (asked.length === 0) return namesOfTargets(config);
  if (asked.includes(NONE)) {
    if (asked.length === 1) return [];
    throw new UsageError(`--track none must stand alone, got ${asked.join(', ')}; leave none out`);
  }
  for (const name of asked) settingsOfTarget(config, name);
  return [...new Set(asked)];
}
