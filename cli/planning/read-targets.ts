/** Targets that a command names, or the project's. */
import { loadConfig } from '../../workers/config/config.ts';
import { requireTrace, requireTracker } from '../../workers/config/targets.ts';
import { NONE, type CommandEnvironment } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';

type Asked = Readonly<Record<'track' | 'trace', readonly string[]>>;

/** Refuses names that no target has, before anything is started. */
export async function readTargets(
  { track, trace }: Asked,
  { project, env }: Pick<CommandEnvironment, 'project' | 'env'>,
): Promise<string[]> {
  const config = await loadConfig(project, env);
  const trackers = namesOr(track, 'track', config.track);
  const traces = namesOr(trace, 'trace', config.trace);
  for (const name of trackers) requireTracker(config, name);
  for (const name of traces) requireTrace(config, name);
  return [...new Set([...trackers, ...traces])];
}

function namesOr(
  asked: readonly string[],
  flag: keyof Asked,
  configured: readonly { name: string }[],
): readonly string[] {
  if (asked.length === 0) return configured.map(({ name }) => name);
  if (!asked.includes(NONE)) return asked;
  if (asked.length === 1) return [];
  throw new UsageError(`--${flag} none must stand alone, got ${asked.join(', ')}; leave none out`);
}
