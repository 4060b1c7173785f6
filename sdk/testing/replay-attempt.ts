import { readFile } from 'node:fs/promises';

import type { Agent, Scenario } from '../../play/agent.ts';
import { replaySaved, type ReplayedAttempt } from '../../play/replay/replay-attempt.ts';
import { parseSavedAttempt, type SavedAttempt } from '../../play/replay/saved-attempt.ts';

/**
 * Plays an attempt that `temper try --save FOLDER` recorded with the agent as it is now, without any engine. `attempt` is
 * its file, or what stands in it.
 */
export async function replayAttempt<S extends Scenario>(
  agent: Agent<S>,
  attempt: string | URL | SavedAttempt,
): Promise<ReplayedAttempt> {
  const isFile = typeof attempt === 'string' || attempt instanceof URL;
  const saved = isFile ? parseSavedAttempt(await readFile(attempt, 'utf8'), String(attempt)) : attempt;
  return replaySaved(agent, saved);
}
